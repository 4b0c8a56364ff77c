// Package engines lists the inference engines that rooftop reads, diagnoses and changes. An engine is its
// data in the catalog (names, flags with defaults, metrics, words), its command line in engine/launch, and
// a package under collect that reads its page and its other endpoints; docs/dev/engines.md says how to add one.
package engines

import (
	"context"
	"slices"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/collect/llamacpp"
	"github.com/rooftop-dev/rooftop/collect/sglang"
	"github.com/rooftop-dev/rooftop/collect/vllm"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/facts"
)

// Engine is what rooftop can read of one inference engine besides its launch.
type Engine struct {
	*catalog.Engine
	// Page is how its metrics page is read.
	Page *enginepage.Dialect
	// Get, if set, fetches the page in place of GET /metrics: an engine that reports more elsewhere appends it
	// in the same format. launch are the settings of the server's launch, nil if it is unknown.
	Get func(ctx context.Context, client *collect.Client, launch map[string]facts.Setting, buf []byte) ([]byte, error)
	// Waits is set for an engine that answers between two of its steps: an answer then takes time and costs none.
	Waits bool
	// Discover asks its other endpoints what the server says about itself, settings by the names of the
	// catalog. It lists what the server does not say, with the reason. An error means that ctx ended.
	Discover func(ctx context.Context, client *collect.Client) (facts.ServerAnswers, []engine.Missing, error)
	// Health is the path that answers 200 while the engine lives and costs it nothing, "" if there is none.
	Health string
}

// All returns every engine, vLLM first.
func All() []Engine {
	return []Engine{
		{Page: vllm.Dialect(), Discover: vllm.Discover, Health: "/health"},
		{Page: llamacpp.Dialect(), Get: new(llamacpp.Pages).Get, Waits: true, Discover: llamacpp.Discover, Health: "/health"},
		// Its /health has the engine generate a token.
		{Page: sglang.Dialect(), Discover: sglang.Discover},
	}
}

// Of returns the engine with an ID of the catalog, vLLM for "".
func Of(id string) Engine {
	g := catalog.EngineOf(id)
	list := All()
	e := list[slices.IndexFunc(list, func(e Engine) bool { return e.Page.Engine == g })]
	e.Engine = g
	return e
}

// NewReader returns a reader of the pages of every engine, for the series of one served model; "" selects
// the model with the most series.
func NewReader(model string) *enginepage.Reader { return enginepage.NewReader(model, dialects()...) }

func dialects() (list []*enginepage.Dialect) {
	for _, e := range All() {
		list = append(list, e.Page)
	}
	return list
}

// DiagnosisSeries returns the names, without prefixes, of the series that a diagnosis of any engine depends on.
func DiagnosisSeries() []string {
	var names []string
	for _, e := range All() {
		names = append(names, e.Page.DiagnosisSeries()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Page reads one server: its page, and its health as its engine reports it. The first page that an engine wrote
// says which engine that is. It must not be used concurrently.
type Page struct {
	Client *collect.Client
	Launch map[string]facts.Setting // settings of the server's launch, nil while it is unknown
	engine *Engine                  // nil before the first page of one
	health *enginepage.Health       // nil if the engine has no endpoint that costs it nothing
}

// Waits reports whether the engine answers between two of its steps.
func (p *Page) Waits() bool { return p.engine != nil && p.engine.Waits }

// Page returns the page, appended to buf.
func (p *Page) Page(ctx context.Context, buf []byte) ([]byte, error) {
	if p.engine != nil && p.engine.Get != nil {
		return p.engine.Get(ctx, p.Client, p.Launch, buf)
	}
	body, err := p.Client.Get(ctx, "/metrics", collect.MetricsAccept, buf)
	if err == nil && p.engine == nil {
		p.recognise(body)
	}
	return body, llamacpp.Explain(err)
}

func (p *Page) recognise(body []byte) {
	d, err := enginepage.Recognise(body, dialects())
	if err != nil {
		return // the reader of the page says what it is
	}
	e := Of(d.Engine.ID)
	if p.engine = &e; e.Health != "" {
		p.health = enginepage.NewHealth(p.Client, e.Health)
	}
}

// Health reads the health of the server; it is unknown before the first page, and on an engine that cannot report
// it without work.
func (p *Page) Health(ctx context.Context) engine.Health {
	switch {
	case p.health != nil:
		return p.health.Read(ctx)
	case p.engine == nil:
		return engine.Health{}
	}
	return engine.Health{Why: p.engine.Name + " has no health endpoint that costs it nothing"}
}
