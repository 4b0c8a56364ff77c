package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
)

// Simulated stands at the head of everything that is told of a simulated server.
const Simulated = "SIMULATED"

// Narrator tells a run to a person in lines as they happen, one line a change: for
// pipes, logs and screen readers. Nothing is ever overwritten. Lines of a simulated
// server are marked.
type Narrator struct {
	W       io.Writer
	Options Options
	// Simulated marks every line from the first on; otherwise the mark begins with
	// the first simulated server that is found.
	Simulated bool

	now      time.Duration
	told     engine.Target          // the server that was told of last
	answer   *engine.Recommendation // what the last answer in full recommended
	applying bool                   // rooftop itself restarts the server: that it is gone is no news
	opened   int                    // the change that was told of last
	err      error
}

// NewNarrator returns a narrator that has said nothing.
func NewNarrator(w io.Writer, o Options) *Narrator { return &Narrator{W: w, Options: o} }

// Err implements Follower.
func (n *Narrator) Err() error { return n.err }

// Intro tells what is about to be shown.
func (n *Narrator) Intro(lines ...string) { n.say(lines...) }

// Waits tells that there is no server yet, and why, at a time since the start.
func (n *Narrator) Waits(at time.Duration, why string) {
	n.now = at
	n.say("no server yet: " + why)
}

// Event implements Follower.
func (n *Narrator) Event(e engine.Event) {
	n.now = e.T
	n.Simulated = n.Simulated || e.Target.Simulated
	switch e.Kind {
	case engine.EventAttached:
		n.attached(&e)
	case engine.EventServerUp:
		n.applying = false
		n.say(cmp.Or(e.Text, "the server answers"), e.Command)
	case engine.EventServerDown:
		if !n.applying {
			n.say(away(e.Text))
		}
	case engine.EventSettling:
		n.settling(&e)
	case engine.EventTrial:
		n.looked(&e)
	case engine.EventPending:
		n.say("autopilot: " + cmp.Or(e.Text, "about to change the server"))
	case engine.EventWaiting:
		n.say("autopilot: " + cmp.Or(e.Text, "waiting"))
	case engine.EventMeasured:
		n.measured(&e)
	case engine.EventDiagnosis:
		n.diagnosis(&e)
	case engine.EventRecommendation:
		n.recommendation(&e)
	case engine.EventApplying:
		n.applying, n.opened = true, e.Iteration
		n.say(fmt.Sprintf("change %d: %s", e.Iteration, cmp.Or(e.Text, spelled(e.Change)+"; the server is restarted with it")))
	case engine.EventVerdict:
		n.verdict(&e)
	case engine.EventKept, engine.EventReverted, engine.EventContinued:
		n.applying = false
		n.say(ended(&e))
	case engine.EventPaused:
		n.say(cmp.Or(e.Text, "paused"))
	case engine.EventError:
		n.applying = false
		n.say("error: " + cmp.Or(e.Text, "not known"))
	case engine.EventFinished:
		n.finished(e.Finished)
	default: // of a later kind than this narrator
		n.say(e.Text)
	}
}

// say writes a paragraph with the time since the start, and others under it;
// empty ones are left out.
func (n *Narrator) say(paragraphs ...string) {
	head := fmt.Sprintf("%5s  ", clock(n.now))
	if n.Simulated {
		head = Simulated + " " + head
	}
	width := n.Options.width() - len(head)
	for _, paragraph := range paragraphs {
		if paragraph == "" {
			continue
		}
		for _, line := range Lines(paragraph, width, n.Options.ASCII) {
			n.write(head + line + "\n")
			head = strings.Repeat(" ", len(head))
		}
	}
}

func (n *Narrator) write(text string) {
	if n.err == nil {
		_, n.err = io.WriteString(n.W, text)
	}
}

// block writes what a report writer makes, set in between blank lines: only lines
// with their time begin at the edge.
func (n *Narrator) block(write func(io.Writer, Options) error) {
	o := n.Options
	o.Width = o.width() - indent
	var b bytes.Buffer
	if err := write(&b, o); err != nil && n.err == nil {
		n.err = err
	}
	n.write("\n")
	for line := range strings.Lines(strings.Trim(b.String(), "\n") + "\n") {
		if line != "\n" {
			line = strings.Repeat(" ", indent) + line
		}
		n.write(line)
	}
	n.write("\n")
}

// attached tells which server was found. The same one found again after a restart
// is no news.
func (n *Narrator) attached(e *engine.Event) {
	if e.Target == n.told {
		return
	}
	n.told = e.Target
	n.say("attached to "+served(e.Target), e.Command)
}

// away says that the server does not answer, and why where that is known.
func away(why string) string {
	switch {
	case why == "":
		return "the server does not answer"
	case strings.HasPrefix(why, "the server"):
		return why
	}
	return "the server does not answer: " + why
}

// looked tells the interval so far, and what the decision waits for.
func (n *Narrator) looked(e *engine.Event) {
	head := fmt.Sprintf("change %d, ", e.Iteration)
	if e.Verdict == nil {
		n.say(head + cmp.Or(e.Text, "looked at"))
		return
	}
	if e.Look > 0 && e.Looks > 0 {
		head += fmt.Sprintf("look %d of %d", e.Look, e.Looks)
		if e.Took > 0 {
			head += " after " + lasted(e.Took)
		}
	} else {
		head += "after " + lasted(e.Took)
	}
	need := ""
	if !e.Verdict.Settled && e.Verdict.Need != "" {
		need = "needs " + figure.Minus(e.Verdict.Need)
	}
	n.say(head + ": " + joinSentences(engine.Proof{Result: e.Verdict}.Effect(), need))
}

// settling tells what a restart turned out to have changed, unless it was announced.
func (n *Narrator) settling(e *engine.Event) {
	if it := e.Opened; it != nil && it.N != n.opened {
		n.opened = it.N
		n.say(fmt.Sprintf("change %d: %s", it.N, cmp.Or(it.Text, changeOf(it))))
	}
	n.say(cmp.Or(e.Text, "the load becomes steady, then it is measured"))
}

func (n *Narrator) measured(e *engine.Event) {
	text := e.Text
	if d := e.Diagnosis; text == "" && d != nil {
		text = "measured for " + lasted(d.Duration) + ", " + plural(d.Windows.Collected, "window")
	}
	n.say(cmp.Or(text, "measured"))
}

// diagnosis gives the first answer, and with Verbose every report in full.
func (n *Narrator) diagnosis(e *engine.Event) {
	switch d := e.Diagnosis; {
	case d == nil:
	case n.Options.Verbose:
		n.block(func(w io.Writer, o Options) error { return WritePlain(w, d, o) })
		n.answer = d.Recommendation
	case e.Iteration == 0:
		n.block(func(w io.Writer, o Options) error { return WriteAnswer(w, d, o) })
		n.answer = d.Recommendation
	}
}

// recommendation tells what is next, unless the answer has just said so.
func (n *Narrator) recommendation(e *engine.Event) {
	r, said := e.Advice, n.answer
	n.answer = nil
	switch {
	case r == nil:
		n.say("nothing to change: " + cmp.Or(e.Text, "nothing is recommended"))
	case said != nil && said.Flag == r.Flag && said.To == r.To && said.Finding == r.Finding:
	case r.Kind != engine.KindFlag:
		n.say("next, but for the "+string(r.Kind)+" and no flag of this server: "+r.Command, r.Why)
	default:
		n.say("next: "+r.Command, r.Why)
	}
}

func (n *Narrator) verdict(e *engine.Event) {
	n.applying = false
	n.say(fmt.Sprintf("change %d, before and after:", e.Iteration))
	if e.Delta != nil {
		n.block(func(w io.Writer, o Options) error { return WriteDelta(w, e.Delta, predictedBy(e.Advice), o) })
	}
	if text, changed := e.Canary.Told(); changed {
		n.say("look at the answers: " + text)
	} else {
		n.say(text)
	}
}

// ended says what became of a change.
func ended(e *engine.Event) string {
	what := map[engine.EventKind]string{
		engine.EventKept: "is kept", engine.EventReverted: "is put back", engine.EventContinued: "stays: the next one is held against it",
	}[e.Kind]
	head := fmt.Sprintf("change %d %s", e.Iteration, what)
	if e.Change.Flag == "" {
		return joinSentences(head, e.Text)
	}
	return head + ": " + spelled(e.Change)
}

func (n *Narrator) finished(f *engine.Finished) {
	if f == nil {
		f = &engine.Finished{}
	}
	head := "done: " + cmp.Or(f.Reason, "the run is over")
	switch {
	case f.Restarts == 0:
		head = "done: nothing was changed; " + f.Reason
	case f.Gain.OK:
		head = fmt.Sprintf("done: output %s with %s; %s", gained(f), restarts(f.Restarts), f.Reason)
	}
	down := ""
	if f.Downtime > 0 {
		down = "the server was down for " + lasted(f.Downtime) + " in all"
	}
	n.say(strings.TrimSuffix(head, "; "), joinSentences(down, f.Score.Told()), f.Command)
}

// gained is the gain with its interval where that is known.
func gained(f *engine.Finished) string {
	text := figure.Change(f.Gain.V) + nbsp + "%"
	if f.GainKnown {
		text = engine.SpellInterval(f.GainWithin)
	}
	return text
}

func restarts(n int) string {
	if n == 1 {
		return "one restart"
	}
	return fmt.Sprintf("%d restarts", n)
}
