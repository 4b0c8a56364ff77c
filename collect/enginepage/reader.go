package enginepage

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Errors of a page that callers branch on.
var (
	// ErrNotEngine means that the answer is not the metrics page of an engine that is read here.
	ErrNotEngine = errors.New("no metrics page of vLLM, SGLang or llama.cpp")
	// ErrStatsOff means that the page has only families of an HTTP server, as that of a
	// vLLM server with its statistics switched off.
	ErrStatsOff = errors.New("no vLLM statistics on the page")
)

// Reader converts metrics pages of one server to engine pages. It keeps the parsed series
// for the next page, so it must not be used concurrently. It never changes a page that
// it returned.
type Reader struct {
	model    string // wanted, "" for none
	picked   string // of the last page
	dialects []*Dialect
	table    *table // of the engine of the last page
	filter   *collect.Filter
	families collect.Families
	bounds   [engine.NumHists][]float64 // of the last page; pages with equal bounds share them
	build    build
}

// NewReader returns a reader of the pages of the given engines, at least one, for the series of one served
// model; "" selects the model with the most series on the first page, and keeps to it.
func NewReader(model string, dialects ...*Dialect) *Reader {
	r := &Reader{model: model, dialects: dialects}
	r.use(dialects[0])
	return r
}

func (r *Reader) use(d *Dialect) {
	r.table = newTable(d)
	r.filter, r.families = r.table.filter(), collect.Families{}
}

// Parse parses a page into p, which it overwrites except for T, Took and Bytes. The error
// wraps ErrNotEngine or ErrStatsOff if the page is not one of the reader's engines. After any error p must
// not be used.
func (r *Reader) Parse(body []byte, p *engine.Page) error {
	*p = engine.Page{T: p.T, Took: p.Took, Bytes: p.Bytes}
	if err := collect.Parse(body, r.filter, &r.families); err != nil {
		if errors.Is(err, collect.ErrNotMetrics) {
			return fmt.Errorf("%w: %w; check --url", ErrNotEngine, err)
		}
		return err
	}
	samples := r.families.Samples
	if family, bucket := lastBucket(samples); bucket {
		return fmt.Errorf("%w: it ends within the histogram %s", collect.ErrTruncated, family)
	}
	b := &r.build
	b.reset(r.table)
	if !r.selectNames(p) {
		d, err := Recognise(body, r.dialects)
		switch {
		case err != nil:
			return err
		case d != r.table.Dialect:
			r.use(d)
			return r.Parse(body, p)
		}
		b.note(d.Engine.Name + " lists its metrics but has no values yet: the server has just started or has had no request yet")
	}
	if id := r.table.Engine.ID; id != catalog.VLLM {
		p.Engine = id
	}
	r.addSamples()
	r.finish(p)
	for i, s := range r.families.Duplicates {
		if i == maxNoted {
			b.note(fmt.Sprintf("%d more series occur twice", len(r.families.Duplicates)-i))
			break
		}
		b.note(Clip(s.String()) + " occurs twice; the first value is used")
	}
	p.Notes = slices.Clone(b.notes)
	if finish := r.table.Finish; finish != nil {
		finish(p)
	}
	return nil
}

// lastBucket reports whether a page ends within a histogram: with a bucket other than the last, or without the count
// that Python writes after the buckets. Rust's client writes it before them.
func lastBucket(samples []collect.Sample) (family string, found bool) {
	if len(samples) == 0 {
		return "", false
	}
	last := samples[len(samples)-1]
	family, bucket := strings.CutSuffix(last.Name, "_bucket")
	if !bucket {
		return "", false
	}
	own := slices.DeleteFunc(slices.Clone(last.Labels), func(l collect.Label) bool { return l.Name == "le" })
	counted := slices.ContainsFunc(samples, func(s collect.Sample) bool {
		return s.Name == family+"_count" && slices.Equal(s.Labels, own)
	})
	bound, err := strconv.ParseFloat(last.Label("le"), 64)
	return family, !counted || err != nil || !math.IsInf(bound, 1)
}

// maxNoted is the most notes of one kind, and the most names in one.
const maxNoted = 3

// selectNames selects the model and, for each metric, the preferred one of its names that
// the page has. It reports whether there is any series of the engine.
func (r *Reader) selectNames(p *engine.Page) bool {
	b, found := &r.build, false
	for _, s := range r.families.Samples {
		if name := s.Label("model_name"); name != "" {
			b.models[name]++
		}
	}
	wanted := b.pickModel(r.model, r.picked)
	r.picked = wanted
	p.Model = Clip(wanted)
	for name := range b.models {
		p.Models = append(p.Models, Clip(name))
	}
	slices.Sort(p.Models)
	if len(p.Models) > 1 {
		others := slices.DeleteFunc(slices.Clone(p.Models), func(m string) bool { return m == p.Model })
		if more := len(others) - maxNoted; more > 0 {
			others = append(others[:maxNoted], fmt.Sprintf("%d more", more))
		}
		b.note(fmt.Sprintf("the page has several models: %s is read, not %s", p.Model, strings.Join(others, ", ")))
	}
	b.model = wanted
	for _, s := range r.families.Samples {
		if !r.wanted(s) {
			continue
		}
		for _, role := range r.table.roles[s.Name] {
			found = found || role.own
			if role.Label == "" || s.Label(role.Label) == role.Value {
				b.best[role.slot] = min(b.best[role.slot], role.pref)
			}
		}
	}
	return found
}

// wanted reports whether a series is of the selected model, or of none, and repeats no other.
func (r *Reader) wanted(s collect.Sample) bool {
	return r.build.ofModel(s) && (r.table.Skip == nil || !r.table.Skip(s))
}

// addSamples adds up the values of the selected names.
func (r *Reader) addSamples() {
	b := &r.build
	for _, s := range r.families.Samples {
		if !r.wanted(s) {
			continue
		}
		for i := range r.table.roles[s.Name] {
			role := &r.table.roles[s.Name][i]
			if role.pref != b.best[role.slot] || (role.Label != "" && s.Label(role.Label) != role.Value) {
				continue
			}
			b.add(role, s)
		}
	}
}

// finish sets the page's readings from the collected values.
func (r *Reader) finish(p *engine.Page) {
	b := &r.build
	p.StartTime, p.Created = b.start, b.created
	for c := range b.counters {
		p.Counters[c] = b.counters[c].opt()
	}
	// The histograms share one new array of cumulative counts, because pages are immutable
	// once published.
	n := 0
	for h := range b.hists {
		n += len(b.hists[h].buckets) + 1
	}
	counts := make([]float64, 0, n)
	for h := range b.hists {
		acc := &b.hists[h]
		p.Hists[h], counts = acc.finish(&r.bounds[h], counts)
		if p.Hists[h].OK {
			p.HistNames[h] = acc.wire
		}
		if acc.odd != "" {
			b.note(acc.wire + ": " + acc.odd)
		}
	}
	b.finishRanks(p)
	b.finishLoRA(p)
}

// rankOrder compares rank names, as numbers if both are numbers.
func rankOrder(a, b string) int {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	if errX == nil && errY == nil {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(a, b)
}

// ratio returns a usage or rate in 0..1. Values up to 1.01 are rounding errors and count
// as 1; anything else has an unknown unit and is invalid.
func ratio(v float64) (stat.Opt, bool) {
	switch {
	case v >= 0 && v <= 1:
		return stat.Some(v), true
	case v > 1 && v <= 1.01:
		return stat.Some(1), true
	}
	return stat.None, false
}
