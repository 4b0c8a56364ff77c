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
func NewReader(model string) *enginepage.Reader {
	var dialects []*enginepage.Dialect
	for _, e := range All() {
		dialects = append(dialects, e.Page)
	}
	return enginepage.NewReader(model, dialects...)
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

// Page fetches the page of one server: of the engine that wrote the last one, vLLM at first. It must not be
// used concurrently.
type Page struct {
	Client *collect.Client
	Launch map[string]facts.Setting // settings of the server's launch, nil while it is unknown
	waits  bool
	get    func(ctx context.Context, client *collect.Client, launch map[string]facts.Setting, buf []byte) ([]byte, error)
}

// Use makes the page that of an engine.
func (p *Page) Use(e Engine) { p.get, p.waits = e.Get, e.Waits }

// Waits reports whether the engine answers between two of its steps.
func (p *Page) Waits() bool { return p.waits }

// Page returns the page, appended to buf.
func (p *Page) Page(ctx context.Context, buf []byte) ([]byte, error) {
	if p.get != nil {
		return p.get(ctx, p.Client, p.Launch, buf)
	}
	body, err := p.Client.Get(ctx, "/metrics", collect.MetricsAccept, buf)
	return body, llamacpp.Explain(err)
}

// HealthOf reads the health of one server of an engine, as [enginepage.Health] does; the state of an engine
// that cannot report it without work stays unknown.
func (e Engine) HealthOf(client *collect.Client) func(context.Context) engine.Health {
	if e.Health == "" {
		return func(context.Context) engine.Health {
			return engine.Health{Why: e.Name + " has no health endpoint that costs it nothing"}
		}
	}
	return enginepage.NewHealth(client, e.Health).Read
}
