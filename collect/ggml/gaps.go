package ggml

import (
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// gaps are the gaps of a trace, at most one per What.
type gaps struct{ all []optrace.Gap }

func (g *gaps) add(more ...optrace.Gap) {
next:
	for _, m := range more {
		for _, have := range g.all {
			if have.What == m.What {
				continue next
			}
		}
		g.all = append(g.all, m)
	}
}

func (g *gaps) list() []optrace.Gap { return append([]optrace.Gap(nil), g.all...) }
