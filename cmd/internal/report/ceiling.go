package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// CeilingSchema names the document that WriteCeilingJSON writes.
const CeilingSchema = "rooftop.ceiling/v1"

// Input is one input of a ceiling with where it came from.
type Input struct {
	Name   string
	Value  any // string, bool, int or float64
	Unit   string
	Source engine.Source
}

// Ceiling is the answer to what hardware allows, without a server.
type Ceiling struct {
	Inputs        []Input
	Classic       *roofline.Classic // nil where it could not be computed
	ClassicReason string
	ClassicMinTP  stat.Opt // the documented rule's least TP
	Physical      roofline.CeilingResult
}

// CeilingInputs lists the inputs of a ceiling in a fixed order. sources says
// where each came from by its name (model, gpu, tensor_parallel_size,
// weight_dtype, kv_cache_dtype, batch, context_tokens, prompt_tokens,
// gpu_memory_utilization, enforce_eager); one that it lacks is a default.
func CeilingInputs(c roofline.Config, in roofline.CeilingInput, sources map[string]engine.Source) []Input {
	list := []Input{
		{"model", c.Model.ID, "", ""},
		{"gpu", c.GPU.Name, "", ""},
		{"tensor_parallel_size", c.TP, "GPUs", ""},
		{"pipeline_parallel_size", c.PP, "GPUs", ""},
		{"weight_dtype", string(c.Weight), "", ""},
		{"kv_cache_dtype", string(c.KV), "", ""},
		{"compute_dtype", string(c.Compute), "", ""},
		{"batch", in.Batch, "req", ""},
		{"context_tokens", in.Context, "tok", ""},
		{"prompt_tokens", in.Prompt, "tok", ""},
		{"gpu_memory_utilization", in.Utilization, "ratio", ""},
		{"enforce_eager", c.Eager, "", ""},
	}
	for i := range list {
		list[i].Source = cmp.Or(sources[list[i].Name], engine.FromDefault)
	}
	return list
}

// fact gives an input the shape of a fact.
func (i Input) fact() fact {
	return row(i.Name, i.Unit, engine.Know(i.Value, i.Source, ""))
}

// WriteCeilingJSON writes c as one rooftop.ceiling/v1 object, indented, with a
// trailing newline.
func WriteCeilingJSON(w io.Writer, c *Ceiling) error {
	var inputs object
	for _, in := range c.Inputs {
		f := in.fact()
		source, note := wireSource(f.source, f.note)
		inputs = append(inputs, member{in.Name, object{{"value", cleanNumber(f.value)}, {"unit", f.unit}, {"source", source}, {"note", note}}})
	}
	doc := object{{"schema", CeilingSchema}, {"inputs", inputs}}
	if c.Classic != nil {
		classic, _ := clean(c.Classic).(object)
		doc = append(doc, member{"classic", append(classic, member{"min_tp", number(c.ClassicMinTP)})})
	} else {
		doc = append(doc, member{"classic", nil}, member{"classic_reason", cmp.Or(c.ClassicReason, "not computed")})
	}
	return encode(w, append(doc, member{"physical", clean(c.Physical)}), "  ")
}

// cleanNumber makes a value that is no number absent.
func cleanNumber(v any) any {
	if f, ok := v.(float64); ok {
		return number(stat.Some(f))
	}
	return v
}

// WriteCeilingPlain writes c as text: whether it fits, what decode and prefill
// can reach and what binds; the documented formulas beside it.
func WriteCeilingPlain(w io.Writer, c *Ceiling, o Options) error {
	r := &ceilingPage{page: newPage(w, o), c: c}
	r.head()
	r.fits()
	r.rates()
	if o.Verbose || o.Classic {
		r.classic()
	}
	if o.Verbose {
		r.inputs()
	}
	return r.flush()
}

type ceilingPage struct {
	*page
	c *Ceiling
}

// input is an input as text, "" where it is not there.
func (r *ceilingPage) input(name string) string {
	for _, in := range r.c.Inputs {
		if in.Name == name && in.Value != nil {
			return factValue(in.fact())
		}
	}
	return ""
}

func (r *ceilingPage) head() {
	r.title(r.input("model")+" on "+r.input("tensor_parallel_size")+nbsp+"×"+nbsp+r.input("gpu"), "all figures (est)")
	parts := []string{
		"weights" + nbsp + r.input("weight_dtype"), "KV" + nbsp + r.input("kv_cache_dtype"),
		sequences(r.input("batch")) + nbsp + "of" + nbsp + r.input("context_tokens") + nbsp + "tokens",
		"prompts of" + nbsp + r.input("prompt_tokens") + nbsp + "tokens",
	}
	r.para(0, 2, r.text(muted, strings.Join(parts, nbsp+"· ")))
}

// sequences names a number of them.
func sequences(n string) string {
	if n == "1" {
		return n + nbsp + "sequence"
	}
	return n + nbsp + "sequences"
}

// mostTP is the largest degree that roofline.Config.MinTP tries: two nodes of
// eight GPUs.
const mostTP = 16

// leastTP says which tensor parallelism fits, where that is another than was
// asked for, with the documented rule's answer where it differs.
func (r *ceilingPage) leastTP() string {
	p, s := &r.c.Physical, ""
	switch {
	case p.MinTP.OK && figure.Count(p.MinTP.V) != r.input("tensor_parallel_size"):
		s = "; the least that fits is TP " + figure.Count(p.MinTP.V)
	case !p.MinTP.OK:
		s = fmt.Sprintf("; no tensor parallelism up to %d fits", mostTP)
	}
	if r.c.ClassicMinTP.OK && r.c.ClassicMinTP != p.MinTP {
		s += " (the documented rule says TP " + figure.Count(r.c.ClassicMinTP.V) + ")"
	}
	return s
}

// fits says whether the weights leave room for a cache, and for how much.
func (r *ceilingPage) fits() {
	p := &r.c.Physical
	weights := figure.Show(finite(stat.Some(p.WeightBytes/1e9)), "GB")
	r.blank()
	capacity := finite(p.KVCapacityTokens)
	switch {
	case !capacity.OK:
		r.para(0, 2, text{r.mark(muted, "not known"), r.span(body, " whether it fits: the GPU's memory is not in the catalog. Weights take "+weights)})
	case !p.Fits:
		r.para(0, 2, text{r.mark(bad, "does not fit:"), r.span(body, " the weights take "+weights+" and leave no room for a KV cache"+r.leastTP())})
	default:
		s := " the weights take " + weights + r.leastTP()
		r.para(0, 2, text{r.mark(ok, "fits:"), r.span(body, s)})
		s = "the KV pool holds about " + figure.Significant(capacity.V) + nbsp + "tokens"
		if p.KVCapacityLow.OK && p.KVCapacityHigh.OK {
			s += " (" + figure.Significant(p.KVCapacityLow.V) + " to " + figure.Significant(p.KVCapacityHigh.V) + ")"
		}
		if n := finite(p.MaxSequences); n.OK {
			s += ": " + sequences(figure.Whole(min(n.V, 1<<40))) + " of that context"
		}
		each, eachUnit := figure.Memory(p.KVBytesPerToken)
		r.para(2, 2, r.text(body, s+"; "+each+nbsp+eachUnit+" a token"))
		if n := finite(p.MaxSequences); n.OK && n.V < r.batch() {
			r.para(0, 2, text{r.mark(warn, "too many:"), r.span(body, " the figures below are for "+sequences(r.input("batch"))+", which the pool does not hold at that context: the server would preempt")})
		}
	}
}

// batch is the batch that was asked for.
func (r *ceilingPage) batch() float64 {
	for _, in := range r.c.Inputs {
		if v, ok := in.Value.(float64); ok && in.Name == "batch" {
			return v
		}
	}
	return 0
}

// rates holds the ideal against the achievable.
func (r *ceilingPage) rates() {
	p := &r.c.Physical
	r.blank()
	t := &table{}
	head := func(s string) cell { return cell{t: r.text(muted, s), right: true} }
	t.add(cell{t: r.text(strong, "Ceiling")}, head("ideal"), head("achievable"), cell{})
	add := func(label, unit string, ideal, reach stat.Opt, note string) {
		t.add(cell{t: r.text(body, nbsp+nbsp+label)}, cell{t: r.text(strong, figure.Show(finite(ideal), unit)), right: true},
			cell{t: r.text(strong, figure.Show(finite(reach), unit)), right: true}, cell{t: r.text(muted, note)})
	}
	band := ""
	if p.DecodeAchievableUpper > 0 {
		band = figure.Significant(p.DecodeAchievableLower) + " to " + figure.Significant(p.DecodeAchievableUpper)
	}
	add("decode", "tok/s", stat.Some(p.DecodeIdealTokensPerS), stat.Some(p.DecodeAchievableTokensPerS), band)
	add("decode step", "s", stat.Some(p.StepIdealS), stat.Some(p.StepAchievableS), "= ITL")
	add("prefill", "tok/s", p.PrefillIdealTokensPerS, p.PrefillAchievableTokensS, "")
	r.table(0, t)
	r.bindings(p.Binding, p.TermsS)
	if p.RidgeTokens.OK {
		r.line(indent, r.text(body, "bound by compute above "+figure.Count(p.RidgeTokens.V)+" tokens a step"))
	}
}

func (r *ceilingPage) classic() {
	r.heading("Classic", "the documented formulas, for comparison")
	if r.c.Classic == nil {
		r.para(indent, indent+2, r.text(muted, absent+" "+cmp.Or(r.c.ClassicReason, "not computed")))
		return
	}
	r.pairs(classicPairs(r.c.Classic, true))
}

func (r *ceilingPage) inputs() {
	r.heading("Inputs", "")
	t := &table{}
	for _, in := range r.c.Inputs {
		t.add(cell{t: r.text(body, in.Name)}, cell{t: r.text(muted, string(in.Source))}, cell{t: r.text(strong, r.input(in.Name))})
	}
	r.table(indent, t)
	r.terms(r.c.Physical.TermsS, r.c.Physical.IdealTermsS)
	for _, a := range r.c.Physical.Assumptions {
		r.para(indent, indent+2, r.text(muted, "assumed: "+a))
	}
}
