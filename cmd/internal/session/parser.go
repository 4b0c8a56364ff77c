package session

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/cmd/internal/engines"
	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/engine"
)

// parser turns polls of one server into samples. Samples share no memory that the parser changes
// later. A parser must not be used concurrently.
type parser struct {
	model  string
	reader *enginepage.Reader
	text   []byte // of the current page
}

// newParser returns a parser for the series of one served model; "" selects the model with the
// most series.
func newParser(model string) *parser { return &parser{model: model, reader: engines.NewReader(model)} }

// sample returns the sample of a poll. A page that cannot be parsed, or on which the reader panics,
// becomes a failed scrape with the reason.
func (r *parser) sample(p *Poll) *engine.Sample {
	s := &engine.Sample{T: p.T, PageErr: p.PageErr, GPU: p.GPU, GPUErr: p.GPUErr, Health: p.Health, Missed: p.Missed}
	if p.PageErr != "" {
		return s
	}
	defer func() {
		if v := recover(); v != nil {
			s.Page, s.PageErr = nil, fmt.Sprintf("the metrics page could not be read: internal error: %v", v)
			r.reader = engines.NewReader(r.model)
		}
	}()
	r.text = append(r.text[:0], p.Body...)
	page := &engine.Page{T: p.PageT, Took: p.Took, Bytes: len(p.Body)}
	if err := r.reader.Parse(r.text, page); err != nil {
		s.PageErr = err.Error()
		return s
	}
	s.Page = page
	return s
}
