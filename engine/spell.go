package engine

import (
	"fmt"
	"slices"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/figure"
)

// Rules write flags and words of vLLM, whose arguments name the settings. Here their findings become those
// of the server's own engine, so that no rule knows another engine's flags.

// spell spells a finding for the server's engine. A remedy that the engine has no flag for is withheld.
func (f *Finding) spell(facts *Facts) {
	g := facts.Dialect()
	if g.ID == catalog.VLLM {
		return
	}
	f.Title, f.Reason = spelled(g, f.Title), spelled(g, f.Reason)
	f.Missing = g.SpellAll(f.Missing)
	f.Evidence = slices.DeleteFunc(f.Evidence, func(e Evidence) bool { _, ok := g.Spell(e.Text); return !ok })
	for i := range f.Evidence {
		f.Evidence[i].Text = spelled(g, f.Evidence[i].Text)
	}
	if f.Fix != nil {
		f.Fix.spell(facts)
	}
}

func (x *Fix) spell(facts *Facts) {
	g := facts.Dialect()
	command, ok := g.Spell(x.Command)
	x.Command, x.Why, x.Withheld = command, spelled(g, x.Why), spelled(g, x.Withheld)
	x.Costs = g.SpellAll(x.Costs)
	var rejected []Rejected
	for _, r := range x.Rejected {
		what, known := g.Spell(r.What)
		why, holds := g.Spell(r.Why)
		if known && holds {
			rejected = append(rejected, Rejected{What: what, Why: why})
		}
	}
	x.Rejected = rejected
	if x.Kind != KindFlag || x.Flag == "" {
		if !ok && x.Withheld == "" {
			x.Withheld = g.Name + " has no flag for it"
		}
		return
	}
	for i, c := range x.Changes() {
		own := facts.Change(c.Flag, c.From, c.To)
		switch {
		case own.Flag == "":
			x.Withheld = g.Name + " has no flag for it"
		case i == 0:
			if own.Flag != c.Flag && own.To == "" && c.To != "" { // a switch that turned the setting off
				x.Command = "remove " + own.Flag + " from the launch command and restart"
			}
			x.Flag, x.From, x.To = own.Flag, own.From, own.To
		default:
			x.Also[i-1] = own
		}
	}
	if x.Withheld == "" {
		x.withPool(facts)
	}
}

// withPool adds to a change of the slots what has to change with them.
func (x *Fix) withPool(facts *Facts) {
	changes := x.Changes()
	all, pool := facts.WithPool(changes)
	if len(all) == len(changes) {
		return
	}
	also := all[len(changes)]
	x.Also = all[1:]
	if pool == 0 {
		x.Command += "; in the same restart add " + also.Flag + ", or the context is divided among the slots"
		return
	}
	x.Command += "; in the same restart set " + also.Flag + " " + also.To + ", which is divided among the slots"
	x.Costs = append(x.Costs, fmt.Sprintf("%.3g times the memory for the KV buffer, so a request may still have %s", float64(pool)/facts.KVCapacityTokens.Value,
		figure.Counted(facts.KVCapacityTokens.Value/float64(facts.MaxNumSeqs.Value), "token")))
}

// spelled returns a sentence in the words of an engine, whether or not each flag has an equivalent.
func spelled(g *catalog.Engine, text string) string {
	text, _ = g.Spell(text)
	return text
}
