package autopilot

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

// Narrator prints the events of a run in lines as they happen: for pipes, logs and screen readers.
// It never overwrites lines. Lines about a simulated server are marked.
type Narrator struct {
	W       io.Writer
	Options render.Options
	// Simulated marks every line from the first on; otherwise the marks begin when a simulated
	// server is found.
	Simulated bool

	now       time.Duration
	announced engine.Target          // the last announced server
	held      *engine.Diagnosis      // printed once the next event has told whether its recommendation stands
	answer    *engine.Recommendation // the recommendation in the last full answer
	warned    bool                   // that it is preliminary
	applying  bool                   // rooftop is restarting the server, so its absence is expected
	opened    int                    // the last announced change
	err       error
}

// NewNarrator returns a narrator that has printed nothing yet.
func NewNarrator(w io.Writer, o render.Options) *Narrator { return &Narrator{W: w, Options: o} }

// Err implements Follower.
func (n *Narrator) Err() error { return n.err }

// Intro prints lines before the first event.
func (n *Narrator) Intro(lines ...string) { n.print(lines...) }

// Waits prints that there is no server yet, and why, at a time since the start.
func (n *Narrator) Waits(at time.Duration, why string) {
	n.now = at
	n.print("no server yet: " + why)
}

// Event implements Follower.
func (n *Narrator) Event(e loop.Event) {
	n.now = e.T
	n.Simulated = n.Simulated || e.Target.Simulated
	n.printHeld(&e)
	switch e.Kind {
	case loop.EventAttached:
		n.attached(&e)
	case loop.EventServerUp:
		n.applying = false
		n.print(cmp.Or(e.Text, "the server answers"), e.Command)
	case loop.EventServerDown:
		if !n.applying {
			n.print(away(e.Text))
		}
	case loop.EventSettling:
		n.settling(&e)
	case loop.EventTrial:
		n.looked(&e)
	case loop.EventPending:
		n.print("autopilot: " + cmp.Or(e.Text, "about to change the server"))
	case loop.EventWaiting:
		n.print("autopilot: " + cmp.Or(e.Text, "waiting"))
	case loop.EventMeasured:
		n.measured(&e)
	case loop.EventDiagnosis:
		n.diagnosis(&e)
	case loop.EventRecommendation:
		n.recommendation(&e)
	case loop.EventApplying:
		n.applying, n.opened = true, e.Iteration
		n.print(fmt.Sprintf("change %d: %s", e.Iteration, cmp.Or(e.Text, tuning.Changes(e.Change)+"; the server is restarted with it")))
	case loop.EventCanary:
		n.opened = e.Iteration
		n.print(fmt.Sprintf("change %d: %s", e.Iteration, e.Text))
	case loop.EventVerdict:
		n.verdict(&e)
	case loop.EventKept, loop.EventReverted, loop.EventContinued:
		n.applying = false
		n.print(ended(&e))
	case loop.EventPaused:
		n.print(cmp.Or(e.Text, "paused"))
	case loop.EventError:
		n.applying = false
		n.print("error: " + cmp.Or(e.Text, "not known"))
	case loop.EventFinished:
		n.finished(e.Finished)
	default: // kinds added after this narrator was written
		n.print(e.Text)
	}
}

// print writes a paragraph with the time since the start, and further ones indented below it. It
// skips empty ones.
func (n *Narrator) print(paragraphs ...string) {
	head := fmt.Sprintf("%5s  ", figure.Clock(n.now.Round(time.Second)))
	if n.Simulated {
		head = tuning.Simulated + " " + head
	}
	width := n.Options.Cells() - len(head)
	for _, paragraph := range paragraphs {
		if paragraph == "" {
			continue
		}
		for _, line := range render.Lines(paragraph, width, n.Options.ASCII) {
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

// block writes a page between blank lines, indented: only lines with a time begin at the left edge.
func (n *Narrator) block(p *page.Page) {
	const indent = 2
	o := n.Options
	o.Width = o.Cells() - indent
	var b bytes.Buffer
	if err := render.Text(&b, p, o); err != nil && n.err == nil {
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

// attached prints which server was found. The same server after a restart is not announced again.
func (n *Narrator) attached(e *loop.Event) {
	if e.Target == n.announced {
		return
	}
	n.announced = e.Target
	n.print("attached to "+tuning.Served(e.Target), e.Command)
}

// away says that the server does not respond, and why if that is known.
func away(why string) string {
	switch {
	case why == "":
		return "the server does not answer"
	case strings.HasPrefix(why, "the server"):
		return why
	}
	return "the server does not answer: " + why
}

// looked prints the interval so far, and what the decision needs.
func (n *Narrator) looked(e *loop.Event) {
	head := fmt.Sprintf("change %d, ", e.Iteration)
	if e.Verdict == nil {
		n.print(head + cmp.Or(e.Text, "looked at"))
		return
	}
	if e.Look > 0 && e.Looks > 0 {
		head += fmt.Sprintf("look %d of %d", e.Look, e.Looks)
		if e.Took > 0 {
			head += " after " + figure.Elapsed(e.Took)
		}
	} else {
		head += "after " + figure.Elapsed(e.Took)
	}
	need := ""
	if !e.Verdict.Settled && e.Verdict.Need != "" {
		need = "needs " + figure.Minus(e.Verdict.Need)
	}
	n.print(head + ": " + tuning.JoinClauses(effect.Verdict{Result: e.Verdict}.Effect(), need))
}

// settling prints what a restart changed, unless that was announced.
func (n *Narrator) settling(e *loop.Event) {
	if it := e.Opened; it != nil && it.N != n.opened {
		n.opened = it.N
		n.print(fmt.Sprintf("change %d: %s", it.N, cmp.Or(it.Text, tuning.IterationChange(it))))
	}
	n.print(cmp.Or(e.Text, "waiting for a steady load before measuring"))
}

func (n *Narrator) measured(e *loop.Event) {
	text := e.Text
	if d := e.Diagnosis; text == "" && d != nil {
		text = "measured for " + figure.Elapsed(d.Duration) + ", " + figure.Counted(d.Windows.Collected, "window")
	}
	n.print(cmp.Or(text, "measured"))
}

// diagnosis holds the first answer and, with Verbose, every report in full.
func (n *Narrator) diagnosis(e *loop.Event) {
	if n.Options.Verbose || e.Iteration == 0 {
		n.held = e.Diagnosis
	}
}

// printHeld prints the diagnosis before an event, below why its recommendation does not stand yet if so.
func (n *Narrator) printHeld(e *loop.Event) {
	d := n.held
	if d == nil {
		return
	}
	n.held, n.answer = nil, d.Recommendation
	if n.warned = e.Preliminary != "" && n.said(e.Advice); n.warned {
		n.print(preliminary(e))
	}
	p := &page.Page{Sections: []page.Section{tuning.Answer(d)}}
	if n.Options.Verbose {
		p = tuning.Diagnosis(d, tuning.Options{Verbose: true})
	}
	n.block(p)
}

// said reports whether a recommendation is that of the last full answer.
func (n *Narrator) said(r *engine.Recommendation) bool {
	said := n.answer
	return said != nil && said.Flag == r.Flag && said.To == r.To && said.Finding == r.Finding
}

// preliminary says that a recommendation does not stand yet, and why.
func preliminary(e *loop.Event) string {
	return "preliminary " + e.Preliminary + ", do not make this change yet: " + tuning.Action(e.Advice)
}

// recommendation prints the next recommendation, unless it was just part of the answer.
func (n *Narrator) recommendation(e *loop.Event) {
	r := e.Advice
	defer func() { n.answer, n.warned = nil, false }()
	switch {
	case r == nil:
		n.print("nothing to change: " + cmp.Or(e.Text, "nothing is recommended"))
	case n.said(r) && (e.Preliminary == "" || n.warned):
	case e.Preliminary != "":
		n.print(preliminary(e), r.Why)
	case r.Kind != engine.KindFlag:
		n.print("next, outside the server's flags ("+string(r.Kind)+"): "+r.Command, r.Why)
	default:
		n.print("next: "+r.Command, r.Why)
	}
}

func (n *Narrator) verdict(e *loop.Event) {
	n.applying = false
	n.print(fmt.Sprintf("change %d, before and after:", e.Iteration))
	if e.Delta != nil {
		var predictions []engine.Prediction
		if e.Advice != nil {
			predictions = e.Advice.Predicted
		}
		n.block(tuning.Delta(e.Delta, predictions))
	}
	if text, changed := e.AnswerCheck.Summary(); changed {
		n.print("check the answers: " + text)
	} else {
		n.print(text)
	}
}

// ended returns what happened to a change.
func ended(e *loop.Event) string {
	what := map[loop.EventKind]string{
		loop.EventKept: "is kept", loop.EventReverted: "is reverted", loop.EventContinued: "stays; the next change is compared with it",
	}[e.Kind]
	head := fmt.Sprintf("change %d %s", e.Iteration, what)
	switch {
	case e.Change.Flag != "":
		return head + ": " + tuning.Changes(e.Change)
	case e.Kind == loop.EventReverted && strings.HasPrefix(e.Text, "reverted: "): // the text says the same
		return fmt.Sprintf("change %d %s", e.Iteration, e.Text)
	}
	return tuning.JoinClauses(head, e.Text)
}

func (n *Narrator) finished(f *loop.Finished) {
	if f == nil {
		f = &loop.Finished{}
	}
	state := "done: "
	if f.ExitCode != 0 {
		state = "stopped: "
	}
	head := state + cmp.Or(f.Reason, "the run is over")
	switch {
	case f.Restarts == 0:
		head = state + "nothing was changed; " + f.Reason
	case f.Gain.OK:
		head = fmt.Sprintf("%soutput %s with %s; %s", state, tuning.FinishedGain(f), figure.Counted(f.Restarts, "restart"), f.Reason)
	}
	down := ""
	if f.Downtime > 0 {
		down = "the server was down for " + figure.Elapsed(f.Downtime) + " in all"
	}
	n.print(strings.TrimSuffix(head, "; "), tuning.JoinClauses(down, f.Score.Summary()), f.Command)
}
