package simbench

import (
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/scenarios"
	"github.com/rooftop-dev/rooftop/collect/probe"
)

// Load turns a stream of a scenario into what the load generator takes.
func Load(s *scenarios.Stream, seed uint64) probe.Load {
	l := probe.Load{
		Arrival:            probe.Poisson,
		PromptTokens:       lengths(s.Prompt),
		OutputTokens:       lengths(s.Output),
		SharedPrefixTokens: s.Prefix.Tokens,
		PrefixGroups:       s.Prefix.Groups,
		PrefixZipf:         s.Prefix.Zipf,
		Think:              probe.Always(s.Think),
		Cancel:             s.Cancel,
		Deadline:           s.Deadline,
		Seed:               seed,
		IgnoreEOS:          true,
	}
	switch {
	case s.Closed():
		l.Arrival = probe.Closed
	case s.CV > 0 && s.CV != 1:
		l.Arrival, l.CV = probe.Gamma, s.CV
	}
	l.Retry = l.Arrival != probe.Closed
	for _, p := range s.Phases {
		level := p.Rate + float64(p.Users)
		to := level
		if p.To > 0 {
			to = p.To
		}
		length := p.For
		if length == 0 && to != level {
			length = time.Hour
		}
		l.Phases = append(l.Phases, probe.Phase{Duration: length, From: level, To: to})
	}
	if s.Turns > 1 {
		l.Turns = probe.Fixed(s.Turns)
		if s.Turn.Set() {
			l.TurnTokens = lengths(s.Turn)
		}
	}
	for _, a := range s.Adapters {
		l.Adapters = append(l.Adapters, probe.Weighted{Model: a, Weight: 1})
	}
	return l
}

func lengths(l scenarios.Lengths) probe.Lengths {
	if l.Mean > 0 {
		return probe.LognormalMean(l.Mean, l.Sigma, l.Most)
	}
	return probe.Between(l.Least, l.Most)
}
