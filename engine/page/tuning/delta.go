package tuning

import (
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
)

// Delta returns the page of a change between two runs: its direction, the values before and after, the
// difference, and the prediction.
func Delta(d *effect.Delta, predictions []engine.Prediction) *page.Page {
	head := page.Section{ID: "verdict", Nodes: []page.Node{page.Paragraph(verdictText(d, predictions))}}
	foot := page.Section{ID: "remarks"}
	if d.Verdict == nil {
		foot.Add(page.Paragraph(page.Toned(page.Muted, noInterval)))
	}
	for _, r := range Remarks(d) {
		if r.Label != "" {
			head.Add(page.Paragraph(page.Mark(page.Warn, r.Label+":"), page.Toned(page.Body, " "+r.Text)))
		} else {
			foot.Add(page.Paragraph(page.Toned(page.Muted, r.Text)))
		}
	}
	foot.Add(page.Paragraph(page.Toned(page.Muted, Profile(d)+". "+ProfileRemark)))
	return &page.Page{Title: "rooftop: a change", Sections: []page.Section{head, {ID: "figures", Nodes: []page.Node{DeltaTable(d, predictions)}}, foot}}
}

// verdictText returns the direction of a change, with the prediction of the goal.
func verdictText(d *effect.Delta, predictions []engine.Prediction) page.Text {
	head, rest := Reason(d)
	t := page.Join(page.Mark(directionTone(d.Direction), strings.ToUpper(string(d.Direction))), page.Toned(page.Body, nbsp+" "+JoinClauses(head, rest)))
	if text, result := GoalPrediction(d, predictions); text != "" && d.Verdict != nil {
		t = page.Join(t, page.Toned(page.Muted, "; "+text))
		if result != Unresolved {
			t = page.Join(t, page.Toned(result.Tone(), ": "+result.String()))
		}
	}
	return t
}

// DeltaTable returns the quantities before and after a change.
func DeltaTable(d *effect.Delta, predictions []engine.Prediction) *page.Table {
	return page.Tabulate(DeltaRows(d, predictions), []page.Field[DeltaRow]{
		page.Left("", page.Body, func(r DeltaRow) string { return r.Label }),
		page.Right("before", page.Body, func(r DeltaRow) page.Cell { return page.Cell{Text: r.Before} }),
		page.Right("after", page.Strong, func(r DeltaRow) page.Cell { return page.Cell{Text: r.After} }),
		page.Notes("", func(r DeltaRow) string { return r.Unit }),
		page.Right("change", page.Accent, func(r DeltaRow) page.Cell { return page.Cell{Text: r.ChangeText} }),
		page.Right("95"+nbsp+"% interval", page.Muted, func(r DeltaRow) page.Cell { return page.Cell{Text: r.Interval} }).Ranked(2),
		{Column: page.Column{Head: "predicted", Left: true, Rank: 1, Tone: page.Muted}, Cell: func(r DeltaRow) page.Cell {
			return page.Cell{Text: strings.TrimSpace(r.Predicted + nbsp + r.Outcome.Word()), Tone: r.Outcome.Tone()}
		}},
	})
}

// ChangeNote returns a verdict in sentences.
func ChangeNote(it *loop.Iteration) string {
	d := it.Delta
	head, rest := Reason(d)
	text, result := GoalPrediction(d, it.Predicted)
	if d.Verdict == nil {
		text = ""
	}
	says := strings.TrimSuffix(string(d.Direction)+": "+JoinClauses(head, rest, withOutcome(text, result)), ".")
	parts := []string{says + ".", Profile(d) + "."}
	if d.Verdict == nil {
		parts = append(parts, noInterval)
	}
	for _, r := range Remarks(d) {
		parts = append(parts, r.String())
	}
	if text, _ := it.AnswerCheck.Summary(); text != "" {
		parts = append(parts, Sentence(text))
	}
	if it.Downtime > 0 {
		parts = append(parts, "The server was down for "+figure.Elapsed(it.Downtime)+".")
	}
	return strings.Join(parts, " ")
}
