package engine

import (
	"slices"

	"github.com/rooftop-dev/rooftop/catalog"
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
		f.Fix.spell(g)
	}
}

func (x *Fix) spell(g *catalog.Engine) {
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
		own, known := SettingChange(g, ArgumentName(c.Flag), c.From, c.To)
		switch {
		case !known:
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
}

// spelled returns a sentence in the words of an engine, whether or not each flag has an equivalent.
func spelled(g *catalog.Engine, text string) string {
	text, _ = g.Spell(text)
	return text
}
