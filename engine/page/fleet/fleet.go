// Package fleet builds the page of many servers, from package engine/fleet.
package fleet

import (
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/fleet"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Page returns the page of servers that are ranked already.
func Page(list []fleet.Server) *page.Page {
	p := &page.Page{Title: "rooftop: " + figure.Counted(len(list), "server")}
	p.Sections = append(p.Sections, page.Section{ID: "answer", Nodes: []page.Node{answer(list)}},
		page.Section{ID: "servers", Title: "Servers", Note: "what to look at first on top", Nodes: []page.Node{table(list)}})
	if uneven := fleet.Findings(list); len(uneven) > 0 {
		var shown page.Findings
		for _, f := range uneven {
			tone := page.Warn
			if f.ID == fleet.OneIll {
				tone = page.Bad
			}
			shown = append(shown, page.Finding{ID: string(f.ID), Tone: tone, Word: tone.Name(), Title: page.Toned(page.Strong, f.Model+": "+strings.ReplaceAll(string(f.ID), "-", " ")), Evidence: []string{f.Text}})
		}
		p.Sections = append(p.Sections, page.Section{ID: "groups", Title: "Servers of one model", Nodes: []page.Node{shown}})
	}
	return p
}

// answer says in one line which server to look at first.
func answer(list []fleet.Server) page.Node {
	lead := func(t page.Tone, text string) page.Prose {
		return page.Prose{Text: page.Join(page.Mark(t, t.Name()), page.Toned(page.Strong, figure.NBSP+" "+text)), Lead: true}
	}
	first := &list[0]
	switch r := first.Recommendation; {
	case first.Condition.Ill():
		return lead(page.Bad, first.Name+": "+first.Condition.String())
	case r != nil && r.Kind == engine.KindFlag:
		text := first.Name + ": " + tuning.Changes(r.Changes()...)
		if g := first.Gain(); g.Mid.OK {
			text += ", output " + tuning.Interval(g.Mid, g.Low, g.High)
		}
		return lead(page.Warn, text)
	}
	return lead(page.OK, "No server has a flag to change")
}

// state returns the state of a server in a word, with its tone.
func state(s *fleet.Server) (page.Tone, string) {
	switch {
	case s.Condition.Ill():
		return page.Bad, s.Condition.State.Word()
	case s.Recommendation != nil:
		return tuning.Severity(s.Finding(s.Recommendation.Finding)), string(s.Recommendation.Finding)
	case s.Ceiling.Impossible != "":
		return page.Warn, "misread: above ideal"
	case s.Outcome == engine.OutcomeNoLoad:
		return page.Muted, "no load"
	case s.Outcome == engine.OutcomeNotEvaluable:
		return page.Muted, "not evaluable"
	}
	return page.OK, "healthy"
}

// change returns what to change on a server, "" if nothing.
func change(s *fleet.Server) string {
	switch r := s.Recommendation; {
	case r == nil:
		return ""
	case r.Kind == engine.KindFlag:
		return tuning.Changes(r.Changes()...)
	default:
		return tuning.FixBy(r.Kind)
	}
}

func table(list []fleet.Server) *page.Table {
	figureOf := func(head, name, unit string, rank int) page.Field[fleet.Server] {
		return page.Right(head, page.Body, func(s fleet.Server) page.Cell {
			if s.Condition.Ill() { // means from before are no figures of now
				return page.Words("")
			}
			return page.Amount(s.Quantity(name).Value, unit)
		}).Ranked(rank)
	}
	achievable := func(s fleet.Server) stat.Opt {
		if p := s.Ceiling.Physical; p != nil && !s.Condition.Ill() {
			return s.Quantity("generation_tokens_per_s").Value.Div(p.AchievableTokensPerS)
		}
		return stat.None
	}
	return page.Tabulate(list, []page.Field[fleet.Server]{
		page.Name("server", func(s fleet.Server) string { return s.Name }),
		{Column: page.Column{Head: "state", Left: true}, Cell: func(s fleet.Server) page.Cell {
			tone, word := state(&s)
			return page.Cell{Text: tone.Sign() + figure.NBSP + word, Tone: tone}
		}},
		page.Right("output", page.Accent, func(s fleet.Server) page.Cell { return page.Words(tuning.Change(s.Gain().Mid)) }),
		page.Right("saves $/h (est)", page.Accent, func(s fleet.Server) page.Cell {
			w := s.Waste()
			if !w.Low.OK || !w.High.OK {
				return page.Amount(w.Mid, "USD")
			}
			return page.Cell{Text: figure.Dollars(w.Low.V) + " to " + figure.Dollars(w.High.V), Value: w.Mid}
		}).Ranked(1),
		figureOf("tok/s", "generation_tokens_per_s", "", 2),
		page.Right("of achievable (est)", page.Body, func(s fleet.Server) page.Cell { return page.Share(achievable(s)) }).Ranked(6),
		figureOf("running", "running_mean", "", 3),
		figureOf("waiting", "waiting_mean", "", 4),
		figureOf("KV peak", "kv_usage_peak", "ratio", 5),
		page.Left("model", page.Muted, func(s fleet.Server) string { return s.Target.Model }).Ranked(7),
		page.Left("release", page.Muted, func(s fleet.Server) string { return s.Target.EngineVersion }).Ranked(8),
		page.Left("GPU", page.Muted, func(s fleet.Server) string { return s.Facts.GPUName.Value }).Ranked(9),
		page.Left("change", page.Accent, func(s fleet.Server) string { return change(&s) }),
	})
}
