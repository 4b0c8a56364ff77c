package tui

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Labels of the advice and of other lists of labelled paragraphs.
const fieldCells = 8

// field is a labelled paragraph.
func (v *nowView) field(w, keep int, label string, body prose) block {
	return v.u.field(w, keep, label, body)
}

func (u *look) field(w, keep int, label string, body prose) block {
	name := u.say(cell.Muted, label+strings.Repeat(" ", max(1, fieldCells-len(label))))
	return u.text(w, keep, name, body)
}

// advice is the panel of the one change to make, or of why there is none.
func (v *nowView) advice(w int) panel {
	s, u := v.s, v.u
	r := s.Advice
	if !v.advisesNow() {
		return v.quiet(w)
	}
	q := panel{title: "Recommendation", token: cell.Accent}
	if !s.Firm {
		q.title, q.note = "Recommendation so far", u.say(cell.Muted, "firm once the baseline is measured")
	}
	say := func(b ...block) { q.blocks = append(q.blocks, b...) }
	action, keys := u.action(r), v.keysOfAdvice(r)
	beside := action.width()+3+keys.width() <= w
	if beside {
		say(block{lines: 1, keep: 94, draw: func(p cell.Pane) {
			action.draw(p, 0, 0)
			keys.draw(p, p.Width()-keys.width(), 0)
		}})
	} else {
		say(u.text(w, 94, nil, action))
	}
	if r.Why != "" {
		say(short(v.field(w, 81, "why", u.say(cell.Body, r.Why)), 5))
	}
	say(v.expectations(w, r)...)
	if len(r.Price) > 0 {
		say(v.field(w, 73, "price", u.say(cell.Body, strings.Join(priceOf(r), "; "))))
	}
	if who := whoActs(r.Kind); who != "" {
		say(v.field(w, 80, "who", u.say(cell.Body, who)))
	}
	if r.Launch != "" {
		say(short(v.field(w, 83, "command", u.launch(r)), 6))
	} else if r.Command != "" && r.Kind == engine.KindFlag {
		say(v.field(w, 83, "how", u.say(cell.Body, r.Command)))
	}
	if !beside {
		say(v.field(w, 85, "keys", keys))
	}
	if r.Kind == engine.KindFlag && s.Firm && !s.Can[engine.CommandApply].OK && !s.Auto {
		say(v.field(w, 84, "then", u.say(cell.Body, "Restart the server so: rooftop notices, measures and compares.")))
	}
	return q
}

// advisesNow says that there is a recommendation to act on now.
func (v *nowView) advisesNow() bool { return v.s.Advice != nil && v.advising() }

// priceOf lists what a change costs, the restart, which is no surprise, last.
func priceOf(r *engine.Recommendation) []string {
	list := slices.Clone(r.Price)
	slices.SortStableFunc(list, func(a, b string) int {
		return cmp.Compare(strings.Count(a, "restart"), strings.Count(b, "restart"))
	})
	return list
}

// advising says that the recommendation can be acted on, and is not of a
// configuration that was just left.
func (v *nowView) advising() bool {
	switch v.s.Phase {
	case engine.PhaseBaseline, engine.PhaseWaiting, engine.PhaseDone, engine.PhaseAttach, engine.PhaseDown:
		n := len(v.s.Iterations)
		return n == 0 || v.s.Iterations[n-1].End != engine.IterationOpen
	}
	return false
}

// action is the change itself: the flag with its number, or what to do where no
// flag is the remedy.
func (u *look) action(r *engine.Recommendation) prose {
	if !r.Changeable() {
		return u.say(cell.Accent, told(cmp.Or(r.Command, r.Flag, r.Why)))
	}
	switch {
	case r.To == "on":
		return u.say(cell.Accent, r.Flag)
	case r.To == "off", r.To == "":
		return u.say(cell.Accent, "without "+r.Flag)
	case r.From != "":
		return line(u.say(cell.Accent, r.Flag+" "+r.From+figure.NBSP+"→"+figure.NBSP), u.say(cell.Accent, r.To))
	}
	return u.say(cell.Accent, r.Flag+figure.NBSP+r.To)
}

// whoActs says who has to act where it is not the one who starts the server.
func whoActs(k engine.Kind) string {
	switch k {
	case engine.KindClient:
		return "the clients of this server: no flag of it helps by itself"
	case engine.KindHost:
		return "whoever runs this host: no flag of the server helps"
	case engine.KindHardware:
		return "whoever chooses the hardware: no flag of the server helps"
	}
	return ""
}

// launch is the whole command with what is new in it marked.
func (u *look) launch(r *engine.Recommendation) prose {
	text := u.spell(r.Launch)
	for _, mark := range [...]string{r.Flag + " " + r.To, r.Flag + "=" + r.To, r.Flag} {
		if at := strings.Index(text, mark); at >= 0 && r.Flag != "" {
			return prose{{cell.Body, text[:at]}, {cell.Accent, text[at : at+len(mark)]}, {cell.Body, text[at+len(mark):]}}
		}
	}
	return prose{{cell.Body, text}}
}

// keysOfAdvice lists the keys that do something about the recommendation.
func (v *nowView) keysOfAdvice(r *engine.Recommendation) prose {
	u, can := v.u, &v.s.Can
	var keys prose
	add := func(on bool, key, does string) {
		if !on {
			return
		}
		if len(keys) > 0 {
			keys = line(keys, u.say(cell.Body, figure.NBSP+" "))
		}
		keys = line(keys, u.key(key, does))
	}
	flag := r.Kind == engine.KindFlag
	add(flag && can[engine.CommandApply].OK, "a", "apply")
	add(flag && (r.Launch != "" || r.Command != ""), "y", "copy the command")
	add(can[engine.CommandSkip].OK, "s", "another")
	return keys
}

// key is a key with what it does.
func (u *look) key(k, does string) prose {
	return line(u.say(cell.Key, "["+k+"]"), u.say(cell.Body, figure.NBSP+strings.ReplaceAll(does, " ", figure.NBSP)))
}

// metricNames are the quantities of predictions and verdicts as people know them.
func metricName(name string) string {
	names := map[string]string{
		"generation_tokens_per_s": "output", "prompt_tokens_per_s": "prompt", "requests_per_s": "requests",
		"ttft_mean_s": "TTFT mean", "ttft_p99_s": "TTFT p99", "itl_mean_s": "ITL mean", "itl_p99_s": "ITL p99", "tpot_mean_s": "TPOT",
		"e2e_mean_s": "end to end", "queue_mean_s": "queue", "usd_per_million_tokens": "$/1M tok",
		"running_mean": "running", "waiting_mean": "waiting", "kv_usage_peak": "KV peak", "preemptions_per_s": "preempted",
		"prefix_hit_rate": "prefix hits", "power_w": "power", "tokens_per_watt": "tok/W",
	}
	return cmp.Or(names[name], name)
}

// expectations are what the change is expected to do, a metric a line, the
// throughput first and longest.
func (v *nowView) expectations(w int, r *engine.Recommendation) []block {
	u := v.u
	var list []block
	names, spans, changes, ranges := 0, 0, 0, 0
	for _, p := range r.Predicted {
		names = max(names, cell.Width(u.spell(metricName(p.Metric))))
		spans = max(spans, cell.Width(u.spell(v.fromTo(p))))
		change, between := predictedChange(p)
		changes, ranges = max(changes, cell.Width(u.spell(change))), max(ranges, cell.Width(u.spell(between)))
	}
	fits := names+1+spans+1+changes+1+ranges <= w-fieldCells // else the change says enough
	for i, p := range r.Predicted {
		change, between := predictedChange(p)
		if change == "" && between == "" {
			continue
		}
		keep := max(40, 82-10*i)
		label := "expect"
		if len(list) > 0 {
			label = ""
		}
		name, span := metricName(p.Metric), v.fromTo(p)
		body := u.say(cell.Body, name+pad(names-cell.Width(name)))
		if fits {
			body = line(body, u.say(cell.Body, " "+pad(spans-cell.Width(u.spell(span)))+strings.ReplaceAll(span, " ", figure.NBSP)))
		}
		if change != "" {
			body = line(body, u.say(cell.Accent, " "+pad(changes-cell.Width(u.spell(change)))+change))
		}
		body = line(body, u.say(cell.Muted, " "+between))
		list = append(list, u.fieldLine(w, keep, label, body))
	}
	return list
}

// fieldLine is a labelled line that is cut where it does not fit: a row of figures
// does not wrap.
func (u *look) fieldLine(w, keep int, label string, body prose) block {
	name := u.say(cell.Muted, label)
	return block{lines: 1, keep: keep, draw: func(p cell.Pane) {
		name.draw(p, 0, 0)
		body.cut(w-fieldCells, u.glyphs.Ellipsis).draw(p, fieldCells, 0)
	}}
}

func pad(n int) string { return strings.Repeat(" ", max(0, n)) }

// fromTo is a predicted metric's present value and what it becomes.
func (v *nowView) fromTo(p engine.Prediction) string {
	d := v.s.Baseline
	if d == nil {
		d = v.latest()
	}
	if d == nil || p.Unit != "ratio" && p.Unit != "" {
		return ""
	}
	now := d.Quantity(p.Metric)
	if !number(now.Value) {
		return ""
	}
	if !number(p.Mid) {
		return overLimit(now) + figure.Show(now.Value, now.Unit) + " →"
	}
	return between(now, stat.Some(now.Value.V*(1+p.Mid.V)))
}

// between spells a value and what it becomes, the unit once where it is one.
func between(now engine.Quantity, then stat.Opt) string {
	a, unitA := figure.Amount(now.Value.V, now.Unit)
	b, unitB := figure.Amount(then.V, now.Unit)
	if unitA != unitB {
		return overLimit(now) + a + " " + unitA + " → " + b + " " + unitB
	}
	return strings.TrimSpace(overLimit(now) + a + " → " + b + " " + unitA)
}

// predictedChange splits a prediction into its middle and its range. Without a
// middle only bounds are known: what the change brings at best, and what it costs
// at worst.
func predictedChange(p engine.Prediction) (change, between string) {
	one := func(o stat.Opt) string { return figure.Change(o.V) + figure.NBSP + "%" }
	two := func(a, b stat.Opt) string {
		return figure.Change(a.V) + " to " + figure.Change(b.V) + figure.NBSP + "%"
	}
	if p.Unit != "ratio" && p.Unit != "" {
		one = func(o stat.Opt) string { return figure.Show(o, p.Unit) }
		two = func(a, b stat.Opt) string { return figure.Show(a, p.Unit) + " to " + figure.Show(b, p.Unit) }
	}
	low, mid, high := number(p.Low), number(p.Mid), number(p.High)
	switch {
	case mid && low && high:
		return one(p.Mid), "(" + two(p.Low, p.High) + ")"
	case mid && high:
		return one(p.Mid), "(at most " + one(p.High) + ")"
	case mid && low:
		return one(p.Mid), "(at least " + one(p.Low) + ")"
	case mid:
		return one(p.Mid), ""
	case low && high && p.Low.V*p.High.V > 0:
		return "", two(p.Low, p.High)
	}
	best, worst := p.Low, p.High
	if rising(p.Metric) {
		best, worst = p.High, p.Low
	}
	var parts []string
	if number(best) && best.V != 0 {
		parts = append(parts, "at best "+one(best))
	}
	if number(worst) && worst.V != 0 {
		parts = append(parts, "at worst "+one(worst))
	}
	if len(parts) == 0 {
		return "", ""
	}
	return "", strings.Join(append([]string{"unknown"}, parts...), ", ")
}

// rising says that more of a metric is better; of latencies and costs less is.
func rising(metric string) bool {
	switch metric {
	case "generation_tokens_per_s", "prompt_tokens_per_s", "requests_per_s", "prefix_hit_rate", "tokens_per_watt":
		return true
	}
	return false
}

// quiet is the panel that says why nothing is to be changed, and what would help.
func (v *nowView) quiet(w int) panel {
	s, u := v.s, v.u
	if s.Quiet == "" || s.Phase == engine.PhaseWorse || noLoad(s) {
		return panel{}
	}
	d := v.latest()
	q := panel{title: "Answer", token: cell.Accent}
	if !s.Firm && s.Phase == engine.PhaseBaseline {
		q.title = "Answer so far"
	}
	state, help := cell.OK, ""
	sign, word := u.glyphs.Good, "ok"
	switch {
	case d == nil:
		state, sign, word = cell.Muted, u.glyphs.Info, "nothing yet"
	case d.Outcome == engine.OutcomeNotEvaluable:
		state, sign, word = cell.Warn, u.glyphs.Warn, "not judged"
		help = "rooftop doctor says what can be read here, and the one thing to do about each gap."
	case d.Outcome == engine.OutcomeRecommendation: // tried, or skipped
		state, sign, word = cell.Muted, u.glyphs.Info, "nothing left"
		help = "[m] measures again. With other load, or other settings, there may be more to gain."
	case s.Can[engine.CommandRemeasure].OK:
		help = "rooftop goes on watching, and says so when something limits the server."
	}
	q.blocks = append(q.blocks, u.text(w, 94, nil, line(u.say(state, sign+figure.NBSP+strings.ReplaceAll(word, " ", figure.NBSP)+figure.NBSP+" "), u.say(cell.Strong, told(s.Quiet)))))
	if d != nil && d.Doubt != "" && !strings.Contains(s.Quiet, d.Doubt) {
		q.blocks = append(q.blocks, v.field(w, 70, "open", u.say(cell.Body, d.Doubt)))
	}
	if help != "" {
		q.blocks = append(q.blocks, v.field(w, 60, "next", u.say(cell.Body, help)))
	}
	return q
}
