package session

import (
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/rules"
)

// Analysis turns polls into a diagnosis. A live run and a replay go through the
// same one, so that both give the same answer.
type Analysis struct {
	header   Header
	parser   *parser
	windower engine.Windower
	windows  []engine.Window
	last     *engine.Page // latest good page
	devices  []engine.GPU
	seen     time.Duration
	notes    map[string]bool
	ordered  []string
}

// NewAnalysis prepares one. The only error is a user's catalog that does not
// parse, which a live run has refused before.
func NewAnalysis(h Header) (*Analysis, error) {
	c, err := h.catalog()
	if err != nil {
		return nil, err
	}
	h.Inputs.Catalog = c
	return &Analysis{
		header: h,
		parser: newParser(h.Model),
		notes:  map[string]bool{},
	}, nil
}

// catalog is rooftop's own with the user's in front. The error is of the user's
// text.
func (h *Header) catalog() (*catalog.Catalog, error) {
	if h.Catalog == "" {
		return catalog.Default(), nil
	}
	return catalog.Default().With(strings.NewReader(h.Catalog), h.CatalogName)
}

// Add takes one poll. It returns the sample made of it and the window that it
// closed, nil where it closed none; the window is valid until the next call.
func (a *Analysis) Add(p *Poll) (*engine.Sample, *engine.Window) {
	s := a.parser.sample(p)
	if s.Page != nil {
		a.last = s.Page
		a.note(s.Page.Notes)
	}
	if p.GPU != nil && len(p.GPU.Devices) > 0 {
		a.devices = p.GPU.Devices
	}
	a.seen = p.T
	w := a.windower.Add(s)
	if w != nil {
		a.windows = append(a.windows, w.Clone())
	}
	return s, w
}

func (a *Analysis) note(notes []string) {
	for _, n := range notes {
		if !a.notes[n] {
			a.notes[n] = true
			a.ordered = append(a.ordered, n)
		}
	}
}

// Seen is the tick of the last poll.
func (a *Analysis) Seen() time.Duration { return a.seen }

// Facts resolves what is known by now.
func (a *Analysis) Facts() engine.Facts {
	in := a.header.Inputs
	in.Page, in.Devices = a.last, a.devices
	return engine.Resolve(in)
}

// Diagnose ends the run.
func (a *Analysis) Diagnose(end End, version string) engine.Diagnosis {
	if w := a.windower.Flush(); w != nil {
		a.windows = append(a.windows, w.Clone())
	}
	facts := a.Facts()
	target := a.header.Target
	target.Engine, target.EngineVersion, target.Model = facts.Engine.Value, facts.EngineVersion.Value, facts.Model.Value
	d := engine.Diagnose(engine.Request{
		Started: a.header.Started, Duration: end.Duration, Version: version,
		Target: target, Facts: facts, Windows: a.windows, Rules: rules.All(),
		Missing: slices.Concat(a.header.Missing, end.Missing), GPUWhy: a.header.GPUWhy,
		Notes: slices.Concat(end.Notes, a.header.Notes, a.ordered),
	})
	if r := d.Recommendation; r != nil && r.Kind == engine.KindFlag {
		r.Launch = engine.ChangedLaunch(a.header.Inputs.LaunchText, engine.Change{Flag: r.Flag, From: r.From, To: r.To})
	}
	return d
}
