package bench

import (
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/scenarios"
	"github.com/rooftop-dev/rooftop/collect/loadgen"
)

// Offering is the timing of a stream of requests in a world.
type Offering struct {
	Origin   time.Duration // start of the stream's times
	Seed     uint64
	From, To time.Duration // window that is tallied
}

// Offer adds a stream of clients, which send requests to the current server of the world.
func (w *World) Offer(s *scenarios.Stream, o Offering) error {
	return w.offer(s.Name, Load(s, o.Seed), o)
}

func (w *World) offer(name string, load loadgen.Load, o Offering) error {
	schedule, err := loadgen.NewOffer(load)
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

// metrics returns what the clients measured between two times, in all and by stream.
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
