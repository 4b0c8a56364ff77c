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

// Check is one thing that doctor looked at.
type Check struct {
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

// WriteDoctor writes what can be read here, what each gap switches off, and the
// one thing to do about it.
func WriteDoctor(w io.Writer, checks []Check, o Options) error {
	p := newPage(w, o)
	const nameAt = 12
	names := 0
	for _, c := range checks {
		names = max(names, width(p.span(body, c.Name).s))
	}
	column := nameAt + min(names, p.width/4) + 2
	faults, gaps := 0, 0
	for _, c := range checks {
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
		if c.Next != "" {
			p.para(column, column+4, text{p.span(muted, "do "), p.span(accent, c.Next)})
		}
	}
	p.blank()
	p.line(0, p.checked(faults, gaps))
	return p.flush()
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

// WriteDoctorJSON writes checks as one rooftop.doctor/v1 object, indented, with a
// trailing newline.
func WriteDoctorJSON(w io.Writer, checks []Check) error {
	return encode(w, object{{"schema", DoctorSchema}, {"checks", clean(checks)}}, "  ")
}
