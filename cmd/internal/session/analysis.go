package session

import (
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/facts"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/rules"
)

// Analysis turns polls into a diagnosis. A live measurement and a replay use the same code, so
// that both give the same result.
type Analysis struct {
	header   Header
	parser   *parser
	windower engine.Windower
	windows  []engine.Window
	last     *engine.Page // latest page that could be read
	devices  []engine.GPU
	lastTick time.Duration // of the last poll
	notes    []string
}

// NewAnalysis returns an analysis without polls. It fails only if the user's catalog in the header
// does not parse, which a live run has checked before.
func NewAnalysis(h Header) (*Analysis, error) {
	c, err := h.Hardware()
	if err != nil {
		return nil, err
	}
	h.Inputs.Catalog = c
	return &Analysis{header: h, parser: newParser(h.Model)}, nil
}

// Hardware returns rooftop's catalog, overlaid with the user's if there is one. It fails if the
// user's text does not parse.
func (h *Header) Hardware() (*catalog.Catalog, error) {
	if h.Catalog == "" {
		return catalog.Default(), nil
	}
	return catalog.Default().With(strings.NewReader(h.Catalog), h.CatalogName)
}

// Add adds one poll. It returns its sample and the window that it completes, nil if it completes
// none; the window is valid until the next call.
func (a *Analysis) Add(p *Poll) (*engine.Sample, *engine.Window) {
	s := a.parser.sample(p)
	if s.Page != nil {
		a.last = s.Page
		for _, n := range s.Page.Notes {
			if !slices.Contains(a.notes, n) {
				a.notes = append(a.notes, n)
			}
		}
	}
	if p.GPU != nil && len(p.GPU.Devices) > 0 {
		a.devices = p.GPU.Devices
	}
	a.lastTick = p.T
	w := a.windower.Add(s)
	if w != nil {
		a.windows = append(a.windows, w.Clone())
	}
	return s, w
}

// LastTick returns the tick of the last poll, since the start of the run.
func (a *Analysis) LastTick() time.Duration { return a.lastTick }

// Facts returns the facts about the server, resolved from the polls so far.
func (a *Analysis) Facts() engine.Facts {
	in := a.header.Inputs
	in.Page, in.Devices = a.last, a.devices
	return facts.Resolve(in)
}

// Diagnose closes the last window and returns the diagnosis of the run. version is that of this
// rooftop.
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
		Notes: slices.Concat(end.Notes, a.header.Notes, a.notes), Objectives: a.header.Objectives,
	})
	if r := d.Recommendation; r != nil && r.Kind == engine.KindFlag {
		r.Launch = loop.CommandWithChanges(a.header.Inputs.LaunchText, r.Changes()...)
	}
	return d
}
