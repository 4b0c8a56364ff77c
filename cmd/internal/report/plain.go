package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
)

// WritePlain writes d as a page of text: the verdict and the one change first,
// then what it rests on. No line is wider than o.Width cells and nothing is cut
// off: long names, addresses and commands are wrapped.
func WritePlain(w io.Writer, d *engine.Diagnosis, o Options) error {
	r := &plain{page: newPage(w, o), d: d}
	r.verdict()
	r.target()
	r.headline()
	r.requestTime()
	r.distance()
	if o.Verbose {
		r.rules()
	} else {
		r.findings()
	}
	r.rejected()
	r.missing()
	if o.Verbose {
		r.facts()
		if !o.Classic {
			r.classic()
		}
		r.physical()
		r.measured()
		r.devices()
	}
	r.footer()
	return r.flush()
}

// plain is one diagnosis on its way to a page.
type plain struct {
	*page
	d *engine.Diagnosis
}

// Columns of the page.
const (
	indent      = 2
	valueColumn = 10 // where text after a short label starts
)

// field writes "label  text" with the text wrapped in its column.
func (r *plain) field(label string, t text) {
	r.define(indent, valueColumn, r.text(muted, label), t)
}

// value returns a measured quantity by name.
func (r *plain) value(name string) engine.Quantity { return finiteQuantity(r.d.Quantity(name)) }

// est is the mark of an estimate, "" for what was measured.
func est(o engine.Origin) string {
	if o == engine.Estimate {
		return "(est)"
	}
	return ""
}

// verdict answers "what now?": state, the one change, what to expect of it,
// why, and its price.
func (r *plain) verdict() {
	d := r.d
	switch rec := d.Recommendation; {
	case rec != nil:
		r.headlineVerdict(severity(r.finding(rec.Finding)), r.title(rec.Finding))
		r.recommendation(rec)
	case d.Outcome == engine.OutcomeNoLoad:
		r.line(0, text{r.mark(muted, "no load"), r.span(strong, nbsp+" No request ran: there is nothing to judge")})
		r.blank()
		r.field("do", r.text(accent, "send requests, then measure again; --duration 2m looks for longer"))
	case d.Outcome == engine.OutcomeNotEvaluable:
		if d.Doubt != "" {
			r.headlineVerdict(warn, "Not evaluable")
			r.blank()
			r.field("why", r.text(body, d.Doubt))
			break
		}
		r.headlineVerdict(bad, "Not evaluable: no window had what a judgement needs")
		r.blank()
		if d.LastRaw != nil && d.LastRaw.Why != "" {
			r.field("why", r.text(body, d.LastRaw.Why))
		}
		r.field("do", r.text(accent, "rooftop doctor says what can be read here, and the one thing to do about each gap"))
	case d.Ceiling.Impossible != "":
		r.headlineVerdict(warn, "Nothing found to change, but the ceilings are misread")
		r.blank()
		r.field("do", r.text(accent, "check --model, --gpu and --tensor-parallel-size; -v shows where each value came from"))
	default:
		r.headlineVerdict(ok, "Nothing to change")
		r.blank()
		r.field("why", r.text(body, r.healthyWhy()))
		if d.Doubt != "" {
			r.field("but", append(text{r.mark(warn, "open:")}, r.span(body, " "+d.Doubt)))
		}
	}
	if d.Ceiling.Impossible != "" {
		r.field("but", append(text{r.mark(warn, "misread:")}, r.span(body, " "+d.Ceiling.Impossible)))
	}
	for _, n := range d.Notes {
		r.field("note", r.text(warn, n))
	}
}

func (r *plain) headlineVerdict(t tone, title string) {
	word := map[tone]string{ok: "ok", warn: "warn", bad: "bad"}[t]
	r.para(0, 8, text{r.mark(t, word), r.span(strong, nbsp+" "+title)})
}

// recommendation writes the change with its number, the expected gain, the
// cause and the price.
func (r *plain) recommendation(rec *engine.Recommendation) {
	r.blank()
	do := r.action(rec)
	r.field("do", do)
	if how := r.text(body, rec.Command); rec.Command != "" && !strings.HasPrefix(do[0].s, how[0].s) {
		r.field("how", how)
	}
	if who := who(rec.Kind); who != "" {
		r.field("who", r.text(body, who))
	}
	if t := r.expectation(rec.Predicted); len(t.rows) > 0 {
		lines := t.lines(r.width - valueColumn)
		label := text{r.span(muted, "expect"), {strings.Repeat(" ", valueColumn-indent-len("expect")), body}}
		r.raw(indent, append(label, lines[0]...))
		for _, l := range lines[1:] {
			r.raw(valueColumn, l)
		}
	}
	if rec.Why != "" {
		r.field("why", r.text(body, rec.Why))
	}
	if len(rec.Price) > 0 {
		r.field("price", r.text(body, strings.Join(rec.Price, "; ")))
	}
}

// action is the change itself: the flag with its number, or what to do where
// no flag is the remedy or a number would not say it.
func (r *plain) action(rec *engine.Recommendation) text {
	if rec.Kind == engine.KindFlag && rec.Flag != "" && rec.To != "" {
		if rec.From != "" {
			return r.text(accent, rec.Flag+" "+rec.From+nbsp+"→"+nbsp+rec.To)
		}
		return r.text(accent, rec.Flag+" "+rec.To)
	}
	return r.text(accent, cmp.Or(rec.Command, rec.Flag, rec.Why))
}

// who says who has to act where it is not the one who starts the server.
func who(kind engine.Kind) string {
	return map[engine.Kind]string{
		engine.KindClient:   "the clients of this server: none of its flags helps",
		engine.KindHost:     "whoever runs this host: no flag of the server helps",
		engine.KindHardware: "whoever chooses the hardware: no flag of the server helps",
	}[kind]
}

// healthyWhy says on what "nothing to change" rests.
func (r *plain) healthyWhy() string {
	w := r.d.Windows
	s := fmt.Sprintf("No rule fired persistently in %s of load.", plural(w.Active, "window"))
	c := r.d.Ceiling.Physical
	out := r.value("generation_tokens_per_s").Value
	if c == nil {
		return s
	}
	if share := out.Div(c.AchievableTokensPerS); share.OK && number(share) != nil {
		s += fmt.Sprintf(" The server reaches %s"+nbsp+"%% of what good software gets out of this hardware at this load (est).", percent(share.V))
	}
	return s
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return whole(float64(n)) + " " + what + "s"
}

// finding returns a finding by id, nil where it is not listed.
func (r *plain) finding(id engine.FindingID) *engine.Finding {
	for i := range r.d.Findings {
		if r.d.Findings[i].ID == id {
			return &r.d.Findings[i]
		}
	}
	return nil
}

func (r *plain) title(id engine.FindingID) string {
	if f := r.finding(id); f != nil && f.Title != "" {
		return f.Title
	}
	return string(id)
}

// severity is the tone of a fired finding: impact 5 of 5 is bad, except where
// nothing is wrong with the server and its clients could ask more of it.
func severity(f *engine.Finding) tone {
	if f != nil && f.Impact >= 5 && (f.Fix == nil || f.Fix.Kind != engine.KindClient) {
		return bad
	}
	return warn
}

// footer says where more is.
func (r *plain) footer() {
	r.blank()
	more := "-v shows every rule, fact and figure with its origin"
	if r.o.Verbose {
		more = "--json has the same as a document"
	}
	if rec := r.d.Recommendation; rec != nil {
		more = "rooftop explain " + string(rec.Finding) + ": how it is judged; " + more
	}
	r.para(0, 0, r.text(muted, more))
}
