package tuning

import (
	"slices"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
)

// CheckState is the result of a check of the environment.
type CheckState string

// States of a check.
const (
	CheckOK     CheckState = "ok"
	CheckWarn   CheckState = "warn"
	CheckBad    CheckState = "bad"
	CheckAbsent CheckState = "absent" // absent without being a fault
)

// Tone returns the tone of a state.
func (s CheckState) Tone() page.Tone {
	switch s {
	case CheckOK:
		return page.OK
	case CheckWarn:
		return page.Warn
	case CheckBad:
		return page.Bad
	}
	return page.Muted
}

// Doctor is the result of the doctor command: what is possible here, and each check.
type Doctor struct {
	Purposes []Purpose `json:"purposes"`
	Checks   []Check   `json:"checks"`
}

// Purpose is a use of rooftop. It depends only on its own checks, so a gap for one purpose does not
// affect another.
type Purpose struct {
	ID       string `json:"id"`       // "server", "trace"; referred to by Check.For
	Commands string `json:"commands"` // commands that serve it: "trace"
	Can      bool   `json:"can"`      // all requirements are met
	Found    string `json:"found"`    // a sentence: what exists, or what is missing
	Next     string `json:"next"`     // the command to start with, or how to meet the requirements; "" if none
}

// Check is one check of the doctor command.
type Check struct {
	For    string     `json:"for"`    // ID of the purpose that needs it, "" if none
	Name   string     `json:"name"`   // "endpoint", "NVML", "/proc"
	State  CheckState `json:"state"`  // result
	Found  string     `json:"found"`  // what was found
	Effect string     `json:"effect"` // what a gap disables, "" if nothing
	Next   string     `json:"next"`   // the next step, "" if none
}

// Recovered is the state of a server whose run was killed, and the result of recovering it.
type Recovered struct {
	Server string   `json:"server"`
	Dir    string   `json:"dir"`
	Run    string   `json:"run,omitzero"`   // "" if unreadable
	Began  string   `json:"began,omitzero"` // RFC 3339, "" if unreadable
	Remedy string   `json:"remedy"`
	Found  []string `json:"found"` // sentences
	Steps  []string `json:"steps"` // steps to take, in order
	End    string   `json:"state"` // "left alone", "to do", "done", "failed"
	Why    string   `json:"reason,omitzero"`
}

// Page returns what is possible here, then for each purpose what can be read, what each gap disables, and
// the next step.
func (d Doctor) Page() *page.Page {
	p := &page.Page{Title: "rooftop doctor"}
	first := map[string]bool{} // next steps of the purposes
	purposes := page.Section{ID: "purposes"}
	for _, x := range d.Purposes {
		mark := page.Mark(page.OK, "available:")
		if !x.Can {
			mark = page.Mark(page.Warn, "not here:")
		}
		purposes.Add(page.Paragraph(mark, page.Toned(page.Strong, " "+x.Commands+"."), page.Toned(page.Body, " "+x.Found)))
		if x.Next != "" {
			purposes.Add(page.Command(x.Next))
		}
		first[x.Next] = true
	}
	p.Sections = append(p.Sections, purposes)
	faults, gaps, next := 0, 0, ""
	var list page.Findings
	flush := func(id string) {
		p.Sections = append(p.Sections, page.Section{ID: "checks-" + id, Nodes: []page.Node{list}})
		list = nil
	}
	for i, c := range d.Checks {
		if len(d.Purposes) > 0 && i > 0 && d.Checks[i-1].For != c.For {
			flush(d.Checks[i-1].For)
		}
		switch c.State {
		case CheckBad:
			faults++
		case CheckWarn:
			gaps++
		}
		f := page.Finding{ID: c.Name, Tone: c.State.Tone(), Word: string(c.State), Title: page.Join(page.Toned(page.Strong, c.Name), page.Toned(page.Body, ": "+c.Found))}
		if c.Effect != "" {
			f.Evidence = append(f.Evidence, "→ "+c.Effect)
		}
		switch {
		case c.Next == "":
		case first[c.Next], c.Next == next:
			f.Evidence = append(f.Evidence, "do: as above")
		default:
			next = c.Next
			f.Evidence = append(f.Evidence, "do: "+c.Next)
		}
		list = append(list, f)
	}
	flush("last")
	sum := checked(faults, gaps)
	if i := slices.IndexFunc(d.Purposes, func(x Purpose) bool { return !x.Can }); i >= 0 && faults == 0 {
		sum = page.Join(page.Mark(page.Warn, "not checked:"), page.Toned(page.Body, " "+d.Purposes[i].Commands))
	}
	p.Sections = append(p.Sections, page.Section{ID: "sum", Nodes: []page.Node{page.Paragraph(sum)}})
	return p
}

// checked summarizes: faults must be fixed, gaps are acceptable.
func checked(faults, gaps int) page.Text {
	gapText := figure.Counted(gaps, "gap") + ": rooftop works without it and reports what is absent"
	switch {
	case faults == 0 && gaps == 0:
		return page.Mark(page.OK, "everything present can be read")
	case faults == 0:
		return page.Toned(page.Body, gapText)
	}
	t := page.Join(page.Mark(page.Bad, figure.Counted(faults, "fault")+":"), page.Toned(page.Body, " fix that first"))
	if gaps > 0 {
		t = page.Join(t, page.Toned(page.Body, "; "+gapText))
	}
	return t
}

// Page returns the findings about one server and the steps to take.
func (r *Recovered) Page() *page.Page {
	sec := page.Section{ID: "server", Nodes: []page.Node{page.Paragraph(page.Toned(page.Strong, r.Server))}}
	var f page.Facts
	label := "found"
	for _, text := range r.Found {
		f.Add(label, page.Body, text)
		label = ""
	}
	label = "to do"
	for i, text := range r.Steps {
		f.Add(label, page.Body, figure.Count(float64(i+1))+"."+nbsp+text)
		label = ""
	}
	if r.Why != "" {
		f = append(f, page.Fact{Label: "but", Text: page.Mark(page.Warn, r.Why)})
	}
	sec.Add(f)
	return &page.Page{Title: "rooftop recover", Sections: []page.Section{sec}}
}
