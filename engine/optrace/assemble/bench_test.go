package assemble_test

import (
	"testing"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/assemble"
)

// thrown is a receiver that keeps nothing.
type thrown struct{}

func (thrown) Graph(*optrace.Graph) {}
func (thrown) Call(*optrace.Call)   {}

func BenchmarkAssembler(b *testing.B) {
	for _, c := range []struct {
		name   string
		change func(*scene)
	}{
		{"operators, 1 lane", func(s *scene) { s.lanes = 1 }},
		{"operators, 8 lanes, new threads", func(s *scene) { s.lanes = 8 }},
		{"barriers and scheduling, 4 lanes", func(s *scene) { s.lanes, s.barriers, s.sched = 4, true, true }},
		{"counters, 2 lanes", func(s *scene) { s.counters = true }},
		{"3 contexts without DAGs", func(s *scene) { s.contexts, s.dag = 3, false }},
	} {
		s := scene{seed: 1, contexts: 1, rounds: 100, ubatches: 1, lanes: 2, nodes: 379, prompt: 64, dag: true, fresh: true}
		c.change(&s)
		m := s.make()
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				a := assemble.New(m.tables, thrown{})
				for i := range m.events {
					a.Push(m.events[i])
				}
			}
			perEvent(b, len(m.events))
		})
	}
}
