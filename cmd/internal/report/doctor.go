package report

import (
	"io"
	"strings"
)

// CheckState says how a check of the surroundings ended.
type CheckState string

// States of a check.
const (
	CheckOK     CheckState = "ok"
	CheckWarn   CheckState = "warn"
	CheckBad    CheckState = "bad"
	CheckAbsent CheckState = "absent" // not there, and nothing is wrong with that
)

// Doctor is what doctor found: what can be done here, and each thing that it looked at.
type Doctor struct {
	Purposes []Purpose
	Checks   []Check
}

// Purpose is something that a person wants rooftop for, judged by its own checks alone:
// what is missing for one is no fault of another.
type Purpose struct {
	ID       string `json:"id"`       // "server", "trace"; Check.For names it
	Commands string `json:"commands"` // that serve it: "trace"
	Can      bool   `json:"can"`      // all that is needed is there
	Found    string `json:"found"`    // in a sentence: what there is, or what is missing
	Next     string `json:"next"`     // the command that begins it, or what gets it, "" nothing
}

// Check is one thing that doctor looked at.
type Check struct {
	For    string     `json:"for"`    // the ID of the purpose that it matters to, "" none
	Name   string     `json:"name"`   // "endpoint", "NVML", "/proc"
	State  CheckState `json:"state"`  // how it is
	Found  string     `json:"found"`  // what was seen
	Effect string     `json:"effect"` // what a gap switches off, "" none
	Next   string     `json:"next"`   // the one thing to do about it, "" nothing
}

func (s CheckState) tone() tone {
	switch s {
	case CheckOK:
		return ok
	case CheckWarn:
		return warn
	case CheckBad:
		return bad
	}
	return muted
}

// WriteDoctor writes what can be done here, then what can be read for each purpose, what
// each gap switches off, and the one thing to do about it.
func WriteDoctor(w io.Writer, d Doctor, o Options) error {
	p := newPage(w, o)
	first := map[string]bool{} // what the purposes say to do
	for _, x := range d.Purposes {
		p.purpose(x)
		first[x.Next] = true
	}
	const nameAt = 12
	names := 0
	for _, c := range d.Checks {
		names = max(names, width(p.span(body, c.Name).s))
	}
	column := nameAt + min(names, p.width/4) + 2
	faults, gaps, next := 0, 0, ""
	for i, c := range d.Checks {
		if len(d.Purposes) > 0 && (i == 0 || d.Checks[i-1].For != c.For) {
			p.blank()
		}
		switch c.State {
		case CheckBad:
			faults++
		case CheckWarn:
			gaps++
		}
		t := c.State.tone()
		label := text{p.mark(t, string(c.State))}
		label = append(label, span{strings.Repeat(" ", max(1, nameAt-label.width())), body}, p.span(strong, c.Name))
		p.define(0, column, label, p.text(body, c.Found))
		if c.Effect != "" {
			p.para(column, column, p.text(muted, "→ "+c.Effect))
		}
		switch {
		case c.Next == "":
		case first[c.Next]:
			p.line(column, p.text(muted, "do what the top says"))
		case c.Next == next:
			p.line(column, p.text(muted, "do the same"))
		default:
			next = c.Next
			p.para(column, column+4, text{p.span(muted, "do "), p.span(accent, c.Next)})
		}
	}
	p.blank()
	p.line(0, p.checked(faults, gaps))
	return p.flush()
}

// purpose says whether it can be done here. What to do is on lines of its own, to be
// copied.
func (p *page) purpose(x Purpose) {
	mark := p.mark(ok, "can be done:")
	if !x.Can {
		mark = p.mark(warn, "not here:")
	}
	p.para(0, 2, text{mark, p.span(strong, " "+x.Commands+"."), p.span(body, " "+x.Found)})
	if x.Next != "" {
		p.command(2, x.Next)
	}
}

// checked sums up: what is broken has to be seen to, a gap is lived with.
func (p *page) checked(faults, gaps int) text {
	const lived = "rooftop works without, and says what is absent"
	switch {
	case faults == 0 && gaps == 0:
		return text{p.mark(ok, "everything that is there can be read")}
	case faults == 0:
		return p.text(body, plural(gaps, "gap")+": "+lived)
	}
	t := text{p.mark(bad, plural(faults, "fault")+":"), p.span(body, " see to that first")}
	if gaps > 0 {
		t = append(t, p.span(body, "; "+plural(gaps, "gap")+": "+lived))
	}
	return t
}

// DoctorSchema names the document that WriteDoctorJSON writes.
const DoctorSchema = "rooftop.doctor/v1"

// WriteDoctorJSON writes what was found as one rooftop.doctor/v1 object, indented, with
// a trailing newline.
func WriteDoctorJSON(w io.Writer, d Doctor) error {
	return encode(w, object{{"schema", DoctorSchema}, {"purposes", clean(d.Purposes)}, {"checks", clean(d.Checks)}}, "  ")
}
