package simbench

import (
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/scenarios"
	"github.com/rooftop-dev/rooftop/collect/probe"
)

// Offering says how a stream of requests meets the world.
type Offering struct {
	Origin   time.Duration // beginning of the stream's times
	Seed     uint64
	From, To time.Duration // what is tallied
}

// Offer has a stream of clients send requests to whatever server the world has.
func (w *World) Offer(s *scenarios.Stream, o Offering) error {
	return w.offer(s.Name, Load(s, o.Seed), o)
}

func (w *World) offer(name string, load probe.Load, o Offering) error {
	schedule, err := probe.NewOffer(load)
	if err != nil {
		return err
	}
	c := &clients{
		name: name, world: w, offer: schedule, origin: o.Origin, quiet: load.Turns.Max <= 1,
		tally: &Tally{From: o.From, To: o.To},
	}
	w.clients = append(w.clients, c)
	return nil
}

// metrics is what the clients saw between two times, all together and by stream.
func (w *World) metrics(from, to time.Duration) map[string]float64 {
	out := map[string]float64{}
	all := Tally{From: from, To: to}
	for _, c := range w.clients {
		if c.name != "" {
			c.tally.metrics(c.name+".", out)
		}
		all.add(c.tally)
	}
	all.metrics("", out)
	return out
}
