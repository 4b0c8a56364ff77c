package bench

import (
	"fmt"
	"strconv"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/collect/loadgen"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Settings parses a launch command of a scenario as the simulated server does, followed by the flags
// of the simulation; the last of several equal flags applies. The error is the server's refusal.
func Settings(command *launch.Config, sc *settings.Scenario, seed uint64, more ...string) (*settings.Settings, error) {
	args := append(sc.Arguments(command.Argv()), "--sim-seed", strconv.FormatUint(seed, 10))
	return settings.Parse(append(args, more...), func(path string) ([]byte, error) {
		return nil, fmt.Errorf("%s: a scenario reads no file", path)
	})
}

// Load returns a stream of a scenario as a load for the load generator.
func Load(s *settings.Stream, seed uint64) loadgen.Load {
	l := loadgen.Load{
		Arrival:            loadgen.Poisson,
		PromptTokens:       lengths(s.Prompt),
		OutputTokens:       lengths(s.Output),
		SharedPrefixTokens: s.Prefix.Tokens,
		PrefixGroups:       s.Prefix.Groups,
		Think:              loadgen.Always(s.Think),
		Cancel:             s.Cancel,
		Deadline:           s.Deadline,
		Seed:               seed,
		IgnoreEOS:          true,
	}
	switch {
	case s.Closed():
		l.Arrival = loadgen.Closed
	case s.CV > 0 && s.CV != 1:
		l.Arrival, l.CV = loadgen.Gamma, s.CV
	}
	l.Retry = l.Arrival != loadgen.Closed
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
		l.Phases = append(l.Phases, loadgen.Phase{Duration: length, From: level, To: to})
	}
	if s.Turns > 1 {
		l.Turns = loadgen.Fixed(s.Turns)
	}
	for _, a := range s.Adapters {
		l.Adapters = append(l.Adapters, loadgen.Weighted{Model: a, Weight: 1})
	}
	return l
}

func lengths(l settings.Lengths) loadgen.Lengths {
	if l.Mean > 0 {
		return loadgen.LognormalMean(l.Mean, l.Sigma, l.Most)
	}
	return loadgen.Between(l.Least, l.Most)
}
