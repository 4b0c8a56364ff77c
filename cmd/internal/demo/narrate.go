package demo

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/report"
	"github.com/rooftop-dev/rooftop/engine"
)

// Mark stands at the head of everything that is told of a simulated server.
const Mark = "SIMULATED"

// Narrator tells a run to a person, in lines as they happen. The first write
// error ends the telling and is kept.
type Narrator struct {
	W       io.Writer
	Options report.Options
	Clock   func() time.Duration

	err error
}

// Err returns the first write error.
func (n *Narrator) Err() error { return n.err }

// say writes a marked paragraph with the time since the start, and others under
// it.
func (n *Narrator) say(text string, under ...string) {
	at := n.Clock().Round(time.Second)
	head := fmt.Sprintf("%s %2d:%02d  ", Mark, int(at.Minutes()), int(at.Seconds())%60)
	width := max(cmp.Or(n.Options.Width, 80), 40) - len(head)
	for _, paragraph := range append([]string{text}, under...) {
		for _, line := range report.Lines(paragraph, width, n.Options.ASCII) {
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

// block writes what a report writer makes, set in between blank lines: only
// marked lines begin at the edge.
func (n *Narrator) block(write func(io.Writer, report.Options) error) {
	const inset = 2
	o := n.Options
	if o.Width > 0 {
		o.Width -= inset
	}
	var b bytes.Buffer
	if err := write(&b, o); err != nil && n.err == nil {
		n.err = err
	}
	n.write("\n")
	for line := range strings.Lines(strings.Trim(b.String(), "\n") + "\n") {
		if line != "\n" {
			line = strings.Repeat(" ", inset) + line
		}
		n.write(line)
	}
	n.write("\n")
}

// Intro tells what is about to be shown.
func (n *Narrator) Intro(lines ...string) { n.say(lines[0], lines[1:]...) }

// ServerUp implements Teller.
func (n *Narrator) ServerUp(command string, took time.Duration) {
	n.say(fmt.Sprintf("the server is up after %.1f s", took.Seconds()), command)
}

// ServerDown implements Teller.
func (n *Narrator) ServerDown(string) {}

// Settling implements Teller.
func (n *Narrator) Settling(d time.Duration) {
	n.say(fmt.Sprintf("the load has %.0f s to become steady, then it is measured", d.Seconds()))
}

// Measured implements Teller.
func (n *Narrator) Measured(iteration int, d *engine.Diagnosis) {
	n.say(fmt.Sprintf("measured for %.0f s, %d windows", d.Duration.Seconds(), d.Windows.Collected))
}

// Diagnosis implements Teller.
func (n *Narrator) Diagnosis(iteration int, d *engine.Diagnosis) {
	switch {
	case n.Options.Verbose:
		n.block(func(w io.Writer, o report.Options) error { return report.WritePlain(w, d, o) })
	case iteration == 0:
		n.block(func(w io.Writer, o report.Options) error { return report.WriteAnswer(w, d, o) })
	}
}

// Recommendation implements Teller. The first stands in the answer already.
func (n *Narrator) Recommendation(iteration int, r *engine.Recommendation) {
	if iteration == 1 {
		return
	}
	switch {
	case r == nil:
		n.say("nothing more to change")
	case r.Kind != engine.KindFlag:
		n.say("next, but for the " + string(r.Kind) + " and no flag of this server: " + r.Why)
	default:
		n.say("next: "+r.Command, r.Why)
	}
}

// Applying implements Teller.
func (n *Narrator) Applying(iteration int, c report.Change) {
	n.say(fmt.Sprintf("change %d: %s; restarting the server with it", iteration, words(c)))
}

// words spells a change.
func words(c report.Change) string {
	switch {
	case c.To == "on":
		return c.Flag
	case c.To == "off":
		return "without " + c.Flag
	case c.From == "":
		return c.Flag + " " + c.To
	}
	return c.Flag + " " + c.From + " → " + c.To
}

// Verdict implements Teller.
func (n *Narrator) Verdict(iteration int, d *engine.Delta, predictions []engine.Prediction) {
	n.say(fmt.Sprintf("change %d, before and after:", iteration))
	n.block(func(w io.Writer, o report.Options) error { return report.WriteDelta(w, d, predictions, o) })
}

// Kept implements Teller.
func (n *Narrator) Kept(iteration int, c report.Change) {
	n.say(fmt.Sprintf("change %d is kept: %s", iteration, words(c)))
}

// Reverted implements Teller.
func (n *Narrator) Reverted(iteration int, c report.Change) {
	n.say(fmt.Sprintf("change %d is reverted: %s", iteration, words(c)))
}

// Error implements Teller.
func (n *Narrator) Error(err error) { n.say("error: " + err.Error()) }

// Finished implements Teller.
func (n *Narrator) Finished(f report.Finish) {
	head := "done: " + f.Reason
	switch {
	case f.Restarts == 0:
		head = "done: nothing was changed; " + f.Reason
	case f.Gain.OK:
		head = fmt.Sprintf("done: output %+.0f %% with %s; %s", f.Gain.V*100, restarts(f.Restarts), f.Reason)
	}
	n.say(head, f.Command)
}

func restarts(n int) string {
	if n == 1 {
		return "one restart"
	}
	return fmt.Sprintf("%d restarts", n)
}
