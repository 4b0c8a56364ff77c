package catalog

import (
	"slices"
	"strings"
)

// speller spells sentences that are written for vLLM in another engine's terms.
type speller struct {
	words *strings.Replacer
	flags map[string]string // vLLM's flag to the engine's, "" if the engine has none
}

// Spell returns a sentence that is written for vLLM with this engine's flags, words and name. Rules and
// pages write a setting as vLLM's flag (--max-num-seqs), so that this is the one place that knows what
// another engine calls it. ok is false if the sentence names a flag that the engine has no equivalent of:
// it is not true there.
func (g *Engine) Spell(text string) (spelled string, ok bool) {
	if g.ID == VLLM || text == "" {
		return text, true
	}
	g.once.Do(func() { g.speller = g.newSpeller() })
	s, ok := g.speller, true
	text = s.words.Replace(text)
	var b strings.Builder
	for {
		i := strings.Index(text, "--")
		if i < 0 {
			break
		}
		end := i + 2
		for end < len(text) && (text[end] == '-' || text[end] >= 'a' && text[end] <= 'z' || text[end] >= '0' && text[end] <= '9') {
			end++
		}
		own, vllm := s.flags[text[i:end]]
		if !vllm {
			own = text[i:end]
		}
		ok = ok && own != ""
		b.WriteString(text[:i] + own)
		text = text[end:]
	}
	return b.String() + text, ok
}

// SpellAll returns those sentences of a list that are true of the engine, spelled by [Engine.Spell].
func (g *Engine) SpellAll(list []string) []string {
	if g.ID == VLLM {
		return list
	}
	var out []string
	for _, text := range list {
		if spelled, ok := g.Spell(text); ok && spelled != "" {
			out = append(out, spelled)
		}
	}
	return out
}

func (g *Engine) newSpeller() *speller {
	s := &speller{flags: map[string]string{}}
	for _, e := range engines()[0].flags().Flags {
		flag := "--" + strings.ReplaceAll(e.Name, "_", "-")
		if own := g.flags(); slices.ContainsFunc(own.Flags, func(o flagEntry) bool { return o.Name == e.Name }) {
			continue // both have it
		}
		s.flags[flag] = g.Flag(e.Name)
	}
	s.flags["--"+apiServers] = g.Flag("api_server_count")
	pairs := make([]string, 0, 2*len(g.Words)+4)
	for _, w := range g.Words {
		pairs = append(pairs, w.From, w.To)
	}
	s.words = strings.NewReplacer(append(pairs, "vLLM", g.Name)...)
	return s
}
