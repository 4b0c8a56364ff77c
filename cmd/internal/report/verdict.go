package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
)

// verdict answers "what now?": state, the one change, what to expect of it,
// why, and its price.
func (r *plain) verdict() {
	d := r.d
	switch rec := d.Recommendation; {
	case rec != nil:
		r.headlineVerdict(severity(r.finding(rec.Finding)), r.title(rec.Finding))
		r.recommendation(rec)
		r.open()
	case d.Outcome == engine.OutcomeNoLoad:
		r.line(0, text{r.mark(muted, "no load"), r.span(strong, nbsp+" No request ran: there is nothing to judge")})
		r.blank()
		if d.Doubt != "" { // requests would not help: the engine is not awake
			r.field("why", r.text(body, d.Doubt))
			break
		}
		r.field("do", r.text(accent, "send requests, then measure again; --duration 2m looks for longer"))
	case d.Outcome == engine.OutcomeNotEvaluable:
		r.notEvaluable()
	case d.Ceiling.Impossible != "":
		r.headlineVerdict(warn, "Nothing found to change, but the ceilings cannot be trusted")
		r.blank()
		r.field("do", r.text(accent, "check --model, --gpu and --tensor-parallel-size; -v shows where each value came from"))
	default:
		r.headlineVerdict(ok, "Nothing to change")
		r.blank()
		r.field("why", r.text(body, r.healthyWhy()))
		r.open()
	}
	if d.Ceiling.Impossible != "" {
		r.field("but", append(text{r.mark(warn, "misread:")}, r.span(body, " "+d.Ceiling.Impossible)))
	}
	for _, n := range d.Notes {
		r.field("note", r.text(warn, n))
	}
}

// open says what an answer does not cover.
func (r *plain) open() {
	if r.d.Doubt != "" {
		r.field("but", append(text{r.mark(warn, "open:")}, r.span(body, " "+r.d.Doubt)))
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
	if rec.Launch != "" {
		r.command(valueColumn, rec.Launch)
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
	if rec.Changeable() {
		switch {
		case rec.To == "on":
			return r.text(accent, rec.Flag)
		case rec.To == "off", rec.To == "":
			return r.text(accent, "without "+rec.Flag)
		case rec.From != "":
			return r.text(accent, rec.Flag+" "+rec.From+nbsp+"→"+nbsp+rec.To)
		}
		return r.text(accent, rec.Flag+" "+rec.To)
	}
	return r.text(accent, cmp.Or(rec.Command, rec.Flag, rec.Why))
}

// who says who has to act where it is not the one who starts the server.
func who(kind engine.Kind) string {
	return map[engine.Kind]string{
		engine.KindClient:   "the clients of this server: no flag of it helps by itself",
		engine.KindHost:     "whoever runs this host: no flag of the server helps",
		engine.KindHardware: "whoever chooses the hardware: no flag of the server helps",
	}[kind]
}

const (
	// longRun is how long to measure again where a run saw too little.
	longRun = 2 * time.Minute
	// fewWindows is the number of windows, judged or with load, below which the engine calls
	// no server healthy.
	fewWindows = 3
)

// notEvaluable says why nothing could be judged, and the one thing to do.
func (r *plain) notEvaluable() {
	d := r.d
	title, t, why := "Not evaluable", warn, d.Doubt
	if d.Windows.Evaluable == 0 {
		title, t = "Not evaluable: no window had what a judgement needs", bad
		if why == "" && d.LastRaw != nil {
			why = d.LastRaw.Why
		}
	}
	r.headlineVerdict(t, title)
	r.blank()
	if why != "" {
		r.field("why", r.text(body, why))
	}
	r.field("do", r.text(accent, r.nextStep()))
}

// nextStep is what a run that could not be judged needs.
func (r *plain) nextStep() string {
	d, seats := r.d, r.finding(engine.SeatSaturation)
	switch {
	case d.Windows.Evaluable == 0:
		return "rooftop doctor says what can be read here, and the one thing to do about each gap"
	case d.LastRaw != nil && d.LastRaw.Failed > 0:
		return "see that the server runs and answers, then measure again"
	case d.Windows.Active == 0:
		return "look into the server's log, then measure again: --duration 2m"
	case min(d.Windows.Evaluable, d.Windows.Active) < fewWindows && d.Duration < longRun:
		return "measure longer: --duration 2m"
	case seats != nil && seats.State == engine.NotEvaluable && !d.Facts.MaxNumSeqs.Known:
		return "give -m N, the server's --max-num-seqs, and measure again"
	}
	return "see to that, then measure again"
}

// healthyWhy says on what "nothing to change" rests.
func (r *plain) healthyWhy() string {
	load := plural(r.d.Windows.Active, "window") + " of load"
	s := "No rule fired persistently in " + load + "."
	if fired := r.firedForNothing(); len(fired) > 0 {
		s = fmt.Sprintf("In %s %s fired, and no change is known to gain anything here (see Findings).", load, joined(fired))
	}
	c := r.d.Ceiling.Physical
	out := r.value("generation_tokens_per_s").Value
	if c == nil {
		return s
	}
	switch share := out.Div(c.AchievableTokensPerS); {
	case !share.OK || number(share) == nil:
	case share.V >= 0.995:
		s += " The server reaches as much as good software gets out of this hardware at this load (est)."
	default:
		s += " The server reaches " + figure.Percent(share.V) + nbsp + "% of what good software gets out of this hardware at this load (est)."
	}
	return s
}

// firedForNothing names the findings that count, and whose remedies are
// withheld or absent.
func (r *plain) firedForNothing() []string {
	var ids []string
	for i := range r.d.Findings {
		if f := &r.d.Findings[i]; f.State == engine.Fired && f.Significant {
			ids = append(ids, string(f.ID))
		}
	}
	return ids
}

// joined lists words as a sentence does.
func joined(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
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
