package vllmsim

import (
	"strconv"
	"time"
)

// createdStep is the time between the creation of two series on the recorded pages.
const createdStep = 13 * time.Microsecond

// created generates creation times, each createdStep later than the previous one.
type created struct{ next time.Time }

func (c *created) take() float64 {
	t := c.next
	c.next = t.Add(createdStep)
	return unix(t)
}

func unix(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// build returns the layout of the page. A series that appears later needs a new layout.
func (b *Book) build() layout {
	if b.multiprocess() {
		return b.buildMultiprocess()
	}
	w := &builder{}
	b.process.write(w)
	if b.settings.LogStats {
		c := &created{next: b.start}
		for _, f := range families() {
			if inBounds(b.release, f.Since, f.Until) {
				b.family(w, &f, c)
			}
		}
		b.lora(w)
		b.cacheConfig(w)
	}
	b.writeRequests(w)
	b.writeRequestsCreated(w, b.start, b.now)
	b.simulated(w)
	return w.layout()
}

// family writes one of the engine's families: for each value of its own label all engines in turn, then
// the creation times in the same order.
func (b *Book) family(w *builder, f *family, c *created) {
	wire := f.wire()
	w.head(wire, f.Help, f.Kind)
	b.samples(w, f, false)
	if f.Kind == gauge {
		return
	}
	w.head(f.base()+"_created", f.Help, gauge)
	b.each(f, func(_ int, _ cell, labels []label) {
		w.constant(c.take(), f.base()+"_created", labels...)
	})
}

// samples writes the samples of a family.
func (b *Book) samples(w *builder, f *family, sumFirst bool) {
	wire := f.wire()
	b.each(f, func(engine int, at cell, labels []label) {
		k := &b.ranks[engine]
		if f.Kind == histo {
			w.histogram(&k.hists[f.Hist], sumFirst, wire, labels...)
			return
		}
		w.sample(&k.cells[at], formValue, wire, labels...)
	})
}

// each calls visit for the series of a family in order.
func (b *Book) each(f *family, visit func(engine int, c cell, labels []label)) {
	model := label{"model_name", b.settings.Served[0]}
	for _, ch := range f.Children {
		if !inBounds(b.release, ch.Since, 0) {
			continue
		}
		var own []label
		if f.Label != "" {
			own = []label{{f.Label, ch.Value}}
		}
		if f.NoEngine {
			visit(0, ch.Cell, append(own, model))
			continue
		}
		for engine := range b.ranks {
			visit(engine, ch.Cell, append([]label{{"engine", strconv.Itoa(engine)}, model}, own...))
		}
	}
}

// simulated writes sim_info, the family that no real server has.
func (b *Book) simulated(w *builder) {
	s := b.settings
	w.head("sim_info", "A simulated server: neither a GPU nor a model is behind these numbers.", gauge)
	w.constant(1, "sim_info",
		label{"gpu", s.GPU.Name},
		label{"release", s.Release},
		label{"scenario", s.Scenario},
		label{"seed", strconv.FormatUint(s.Seed, 10)},
		label{"time_scale", strconv.FormatFloat(s.Scale, 'g', -1, 64)},
	)
}
