package tui

import (
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/verdict"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
	"github.com/rooftop-dev/rooftop/tui/lines"
)

// deltaKeeps holds the priority of each metric of a verdict on a small screen.
var deltaKeeps = map[string]int{
	tuning.Output: 82, "ttft_p99_s": 79, "itl_p99_s": 77, "running_mean": 50, "waiting_mean": 49, "usd_per_million_tokens": 48, "requests_per_s": 36,
	"ttft_mean_s": 35, "itl_mean_s": 34, "e2e_mean_s": 33, "kv_usage_peak": 32, "preemptions_per_s": 31, "prefix_hit_rate": 30, "power_w": 29,
	"tokens_per_watt": 28,
}

// last returns the latest iteration, nil if there is none.
func (v *nowView) last() *loop.Iteration { return tuning.Run{Snapshot: v.s}.Last() }

// verdict returns the panel of the result of the last change, until the next change. short selects
// a brief form beside the next recommendation.
func (v *nowView) verdict(w int, short bool) frame.Panel {
	it, u := v.last(), v.u
	if it == nil || it.Delta == nil && it.End == loop.IterationOpen {
		return frame.Panel{}
	}
	q := frame.Panel{Title: "Change " + figure.Whole(float64(it.N)), Note: page.Toned(cell.Muted, v.outcomeWords(it))}
	if it.Failure != "" {
		q.Add(failure(u, w, it))
	}
	if it.Delta == nil && it.Failure != "" {
		q.Add(u.Paragraph(w, 78, nil, page.Toned(cell.Body, changeText(it))))
		if said := expectation(it); said != "" {
			q.Add(u.Paragraph(w, 60, nil, page.Toned(cell.Muted, tuning.Sentence(said+", not measured"))))
		}
		return q
	}
	if it.Delta == nil {
		q.Add(u.Paragraph(w, 76, nil, page.Join(page.Toned(cell.Warn, u.Glyphs.Warn+figure.NBSP+"no verdict  "), page.Toned(cell.Body, it.Text+broken(it)))))
		return q
	}
	if short {
		_, rest := tuning.Reason(it.Delta)
		says := page.Join(direction(u, it), page.Toned(cell.Body, ". "+strings.TrimSpace(tuning.Sentence(rest)+" "+tuning.Sentence(it.Text))))
		if text := profile(it); text != "" {
			says = page.Join(says, page.Toned(cell.Muted, " "+text))
		}
		q.Add(u.Paragraph(w, 92, nil, says))
		q.Add(deltaLine(u, w, it.Delta))
		v.proof(&q, w, it, true)
	} else {
		q.Add(u.Paragraph(w, 92, nil, direction(u, it)))
		q.Add(u.Paragraph(w, 78, nil, page.Toned(cell.Body, changeText(it))))
		v.proof(&q, w, it, false)
		q.Add(deltas(u, w, it.Delta, it.Predicted, false)...)
	}
	for _, l := range it.Load {
		q.Add(u.Paragraph(w, 73, nil, page.Join(page.Toned(cell.Warn, u.Glyphs.Warn+figure.NBSP+"other load: "), page.Toned(cell.Body, l))))
	}
	if text := profile(it); text != "" && !short {
		q.Add(u.Paragraph(w, 80, nil, page.Toned(cell.Muted, text+" "+tuning.ProfileRemark)))
	}
	return q
}

// broken returns the end of a change that has no verdict, "" if it is still open.
func broken(it *loop.Iteration) string {
	switch it.End {
	case loop.IterationBroken:
		return ": the server was changed or stopped before the measurement was over"
	case loop.IterationReverted:
		return ": reverted"
	}
	return ""
}

// outcomeWords describes what happened to a change.
func (v *nowView) outcomeWords(it *loop.Iteration) string {
	switch it.End {
	case loop.IterationKept:
		return "kept as the new baseline"
	case loop.IterationContinued:
		return "kept by you as the new baseline"
	case loop.IterationReverted:
		return "reverted; the baseline is unchanged"
	case loop.IterationNoGain:
		if v.s.Auto {
			return "not kept; the next change replaces it"
		}
		if d := it.Delta; d != nil && d.Direction != verdict.Plateau && d.Direction != verdict.Worse {
			return "unresolved; [m] measures it again"
		}
		if v.s.Can[loop.CommandRevert].OK {
			return "no gain; [r] reverts it, or the next change replaces it"
		}
		return "no gain; the next change replaces it"
	case loop.IterationNoise:
		return "same settings: noise"
	case loop.IterationBroken:
		if it.Failure != "" {
			return "failed: not kept"
		}
		return "not measured to the end"
	}
	return ""
}

// profile returns the direction by the PROFILE formula if it differs from the verdict, otherwise
// "".
func profile(it *loop.Iteration) string {
	d := it.Delta
	if d.Classic == d.Direction || d.Classic == "" || it.End == loop.IterationNoise {
		return ""
	}
	return figure.Stopped(tuning.Profile(d))
}

// direction returns the verdict in a word, with its figure.
func direction(u *frame.Settings, it *loop.Iteration) page.Text {
	sign, word, token := verdictSign(u, it)
	says, _ := tuning.Reason(it.Delta)
	head := page.Join(page.Toned(token, sign+figure.NBSP+strings.ReplaceAll(strings.ToUpper(word), " ", figure.NBSP)), page.Toned(cell.Strong, " "+says))
	if said := expectation(it); said != "" {
		head = page.Join(head, page.Toned(cell.Muted, "; "+said))
	}
	return head
}

// deltaLine returns the most important figures of a verdict in one line.
func deltaLine(u *frame.Settings, w int, d *effect.Delta) frame.Block {
	var parts page.Text
	rows := tuning.DeltaRows(d, nil)
	slices.SortStableFunc(rows, func(a, b tuning.DeltaRow) int { return deltaKeeps[b.Name] - deltaKeeps[a.Name] })
	for _, r := range rows {
		if deltaKeeps[r.Name] < 50 || r.Before == figure.Absent || r.After == figure.Absent {
			continue
		}
		next := page.Join(page.Toned(cell.Muted, r.Label+" "), page.Toned(cell.Body, strings.TrimSpace(r.Before+" → "+r.After+" "+r.Unit)))
		if len(parts) > 0 {
			next = page.Join(page.Toned(cell.Muted, ", "), next)
		}
		if u.Width(parts)+u.Width(next) <= w {
			parts = page.Join(parts, next)
		}
	}
	return u.OneLine(79, parts)
}

// deltas returns a row per metric: before, after, the change, its interval, and whether it was within the prediction,
// which is open soFar.
func deltas(u *frame.Settings, w int, d *effect.Delta, predicted []engine.Prediction, soFar bool) []frame.Block {
	list := tuning.DeltaRows(d, predicted)
	text := func(tone page.Tone, right bool, of func(r tuning.DeltaRow) string) page.Field[tuning.DeltaRow] {
		return page.Field[tuning.DeltaRow]{Column: page.Column{Left: !right, Tone: tone}, Cell: func(r tuning.DeltaRow) page.Cell { return page.Cell{Text: of(r)} }}
	}
	return tableRows(u, w, page.Tabulate(list, []page.Field[tuning.DeltaRow]{
		text(cell.Muted, false, func(r tuning.DeltaRow) string { return r.Label }),
		text(cell.Body, true, func(r tuning.DeltaRow) string { return r.Before + " →" }),
		text(cell.Strong, true, func(r tuning.DeltaRow) string { return r.After }),
		text(cell.Muted, false, func(r tuning.DeltaRow) string { return r.Unit }),
		page.Right("", cell.Body, func(r tuning.DeltaRow) page.Cell { return page.Cell{Text: r.ChangeText, Tone: r.Tone} }),
		text(cell.Muted, true, func(r tuning.DeltaRow) string { return r.Interval }).Ranked(1),
		page.Notes("", func(r tuning.DeltaRow) string {
			switch {
			case r.PredictedRange == "":
				return ""
			case soFar || r.Outcome == tuning.Unresolved:
				return "predicted " + r.PredictedRange
			}
			return "predicted " + r.PredictedRange + ": " + r.Outcome.Word()
		}).Ranked(2),
	}), func(i int) int { return deltaKeeps[list[i].Name] })
}

// proof adds the evidence for a verdict, in the order in which users question it: the reason, the
// chart with the prediction, other differences, remarks.
func (v *nowView) proof(q *frame.Panel, w int, it *loop.Iteration, brief bool) {
	p, ok := effect.VerdictOf(it.Delta)
	if !ok {
		return
	}
	u := v.u
	warn := func(keep int, word, text string) {
		q.Add(u.Paragraph(w, keep, nil, page.Join(page.Toned(cell.Warn, u.Glyphs.Warn+figure.NBSP+word+": "), page.Toned(cell.Body, text))))
	}
	if !brief {
		_, rest := p.Headline()
		q.Add(u.Paragraph(w, 86, nil, page.Toned(cell.Body, tuning.Sentence(rest))), outcome(u, it, p))
	}
	if text, changed := it.AnswerCheck.Summary(); changed {
		warn(85, "answers", text)
	} else if !brief {
		q.Add(u.Paragraph(w, 65, nil, page.Toned(cell.Body, tuning.Sentence(text))))
	}
	keeps := map[tuning.RemarkKind]int{
		tuning.AboutObjective: 71, tuning.AboutBrokenObjective: 87, tuning.AboutTraffic: 73, tuning.AboutLimit: 63, tuning.AboutWarmUp: 61, tuning.AboutCause: 72, tuning.AboutWidth: 74,
	}
	for _, r := range tuning.Remarks(it.Delta) {
		keep := keeps[r.Kind]
		switch {
		case keep == 0, r.Kind == tuning.AboutTraffic && len(it.Load) > 0, r.Kind == tuning.AboutWidth && !p.RestartsDominate():
		case r.Label != "":
			warn(keep, r.Label, r.Text)
		case r.Kind == tuning.AboutObjective:
			q.Add(u.Paragraph(w, keep, nil, page.Join(page.Toned(cell.OK, u.Glyphs.Good+figure.NBSP), page.Toned(cell.Body, r.Text))))
		case !brief:
			q.Add(u.Paragraph(w, keep, nil, page.Toned(cell.Muted, r.Text)))
		}
	}
}

// outcome returns the chart of the measured interval over the prediction.
func outcome(u *frame.Settings, it *loop.Iteration, p effect.Verdict) frame.Block {
	interval, mid := stretchOf(p.Result)
	if _, ok := p.Change(); !ok {
		return frame.Block{}
	}
	row := intervalRow{name: "measured", band: lines.EmptyStretch(), interval: interval, mid: mid, token: cell.Trial}
	if q, ok := effect.PredictionOf(it.Predicted, p.Result.Goal); ok {
		row.band = lines.Stretch{Low: q.Low.V, High: q.High.V}
	}
	return intervals(u, 82, []intervalRow{row}, []lines.Stretch{row.band, interval})
}

// failure returns why a change could not be made or did not last.
func failure(u *frame.Settings, w int, it *loop.Iteration) frame.Block {
	return u.Paragraph(w, 93, nil, page.Join(page.Toned(cell.Bad, u.Glyphs.Bad+figure.NBSP+"FAILED "), page.Toned(cell.Strong, tuning.Sentence(it.Failure))))
}

// changeText returns what was changed, and how long the server was down.
func changeText(it *loop.Iteration) string {
	text := tuning.Sentence(it.Text)
	if it.Downtime > 0 {
		text += " The server was down for " + figure.Elapsed(it.Downtime) + "."
	}
	return text
}
