package page

import (
	"strconv"
	"time"
)

// createdStep lies between the creation of two series on the recorded pages.
const createdStep = 13 * time.Microsecond

// created hands out creation times, each a little later than the one before.
type created struct{ next time.Time }

func (c *created) take() float64 {
	t := c.next
	c.next = t.Add(createdStep)
	return unix(t)
}

func unix(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// build lays the page out. A series that appears later needs a new layout.
func (b *Book) build() layout {
	if b.multiprocess() {
		return b.buildMultiprocess()
	}
	w := &builder{}
	b.process.write(w)
	if b.settings.LogStats {
		c := &created{next: b.start}
		for _, f := range families() {
			if in(b.release, f.since, f.until) {
				b.family(w, &f, c)
			}
		}
		b.lora(w)
		b.cacheConfig(w)
	}
	b.http.write(w, b.start, b.now)
	b.simulated(w)
	return w.layout()
}

// family writes one of the engine's families: for each value of its own label
// the engines in turn, then the creation times in the same order.
func (b *Book) family(w *builder, f *family, c *created) {
	wire := f.wire()
	w.head(wire, f.help, f.kind.String())
	b.samples(w, f, false)
	if f.kind == gauge {
		return
	}
	w.head(f.base()+"_created", f.help, "gauge")
	b.each(f, func(_ int, _ cell, labels []label) {
		w.constant(c.take(), f.base()+"_created", labels...)
	})
}

// samples writes the series of a family that change.
func (b *Book) samples(w *builder, f *family, sumFirst bool) {
	wire := f.wire()
	b.each(f, func(engine int, at cell, labels []label) {
		k := &b.ranks[engine]
		if f.kind == histo {
			w.histogram(&k.hists[f.hist], sumFirst, wire, labels...)
			return
		}
		w.sample(&k.cells[at], formValue, wire, labels...)
	})
}

// each visits the series of a family in order.
func (b *Book) each(f *family, visit func(engine int, c cell, labels []label)) {
	children := f.children
	if f.kind == histo {
		children = []child{{}}
	}
	model := label{"model_name", b.settings.Served[0]}
	for _, ch := range children {
		if !in(b.release, ch.since, 0) {
			continue
		}
		var own []label
		if f.label != "" {
			own = []label{{f.label, ch.value}}
		}
		if f.noEngine {
			visit(0, ch.cell, append(own, model))
			continue
		}
		for engine := range b.ranks {
			visit(engine, ch.cell, append([]label{{"engine", strconv.Itoa(engine)}, model}, own...))
		}
	}
}

// simulated writes the one family that no server has.
func (b *Book) simulated(w *builder) {
	s := b.settings
	w.head("sim_info", "A simulated server: neither a GPU nor a model is behind these numbers.", gauge.String())
	w.constant(1, "sim_info",
		label{"gpu", s.GPU.Name},
		label{"release", s.Release},
		label{"scenario", s.Scenario},
		label{"seed", strconv.FormatUint(s.Seed, 10)},
		label{"time_scale", strconv.FormatFloat(s.Scale, 'g', -1, 64)},
	)
}
