package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/collect/probe"
)

// load is what the flags offer, or what is wrong with them.
func (o *loadOptions) load() (*probe.Load, error) {
	l := &probe.Load{
		Clients: o.clients, Rate: o.rate, IgnoreEOS: o.ignoreEOS, Chat: o.chat,
		SharedPrefixTokens: o.prefix, PrefixGroups: o.groups, PrefixZipf: o.zipf,
		Cancel: o.cancel, Deadline: o.deadline, Retry: o.retry, TraceSpeed: o.traceSpeed,
		Stagger: o.stagger, Together: o.flags.Changed("stagger") && o.stagger == 0,
		Seed: o.seed, Duration: o.duration, Requests: o.requests, TokensPerWord: o.perWord,
	}
	if o.flags.Changed("shared-prefix") {
		l.SharedPrefixTokens = o.deprecatedPrefix
	}
	for _, read := range []func(*probe.Load) error{o.readStyle, o.readLengths, o.readTrace, o.readArrival, o.readLevels, o.readAdapters, o.readSLO} {
		if err := read(l); err != nil {
			return nil, err
		}
	}
	if err := l.Validate(); err != nil {
		return nil, usage("load: %s", oneLine(err))
	}
	return l, nil
}

func (o *loadOptions) readStyle(l *probe.Load) error {
	switch o.style {
	case "auto", "words":
	case "characters":
		l.Style = probe.Characters
	default:
		return usage("--prompt-style is auto, words or characters, not %q", o.style)
	}
	if o.flags.Changed("tokens-per-word") && !(o.perWord > 0 && o.perWord <= 100) {
		return usage("--tokens-per-word must be above 0 and at most 100, not %v", o.perWord)
	}
	return nil
}

func (o *loadOptions) readLengths(l *probe.Load) error {
	read := func(name string) ([]byte, error) { return readFile(name, 64<<20) }
	for _, f := range []struct {
		name, text string
		to         *probe.Lengths
	}{
		{"prompt-tokens", o.prompt, &l.PromptTokens}, {"output-tokens", o.answer, &l.OutputTokens},
		{"turns", o.turns, &l.Turns}, {"turn-tokens", o.turn, &l.TurnTokens},
	} {
		if f.text == "" {
			continue
		}
		lengths, err := probe.ParseLengths(f.text, read)
		if err != nil {
			return usage("--%s: %w", f.name, err)
		}
		*f.to = lengths
	}
	think, err := probe.ParseDelay(o.think)
	if err != nil {
		return usage("--think: %w", err)
	}
	l.Think = think
	return nil
}

func (o *loadOptions) readTrace(l *probe.Load) error {
	if o.trace == "" {
		if o.flags.Changed("trace-speed") {
			return usage("--trace-speed needs a --trace")
		}
		return nil
	}
	for _, name := range []string{"prompt-tokens", "output-tokens", "turns", "turn-tokens", "prefix-tokens", "shared-prefix"} {
		if o.flags.Changed(name) {
			return usage("--%s and --trace: a trace has lengths of its own; give one of them", name)
		}
	}
	trace, err := readTrace(o.trace)
	if err != nil {
		return usage("--trace: %w", err)
	}
	l.Trace = trace
	return nil
}

// readArrival settles how requests come, and refuses flags that then mean
// nothing.
func (o *loadOptions) readArrival(l *probe.Load) error {
	set := o.flags.Changed
	switch {
	case o.arrival != "":
		arrival, err := probe.ParseArrival(o.arrival)
		if err != nil {
			return usage("--arrival: %w", err)
		}
		l.Arrival = arrival
	case set("rate"):
		l.Arrival = probe.Poisson
	case l.Trace != nil && !set("clients") && !set("steps") && !set("ramp"):
		l.Arrival = probe.Replay
	}
	if set("burstiness") {
		if !(o.burstiness > 0 && o.burstiness <= 1e6) {
			return usage("--burstiness must be above 0, not %v", o.burstiness)
		}
		if l.Arrival == probe.Poisson && o.arrival == "" {
			l.Arrival = probe.Gamma
		}
		if l.Arrival != probe.Gamma {
			return usage("--burstiness is of gamma arrivals, not of %v ones; give --rate", l.Arrival)
		}
	}
	l.CV = 1 / math.Sqrt(o.burstiness)
	for _, f := range []struct {
		name  string
		means bool
		of    string
	}{
		{"rate", l.Arrival != probe.Closed && l.Arrival != probe.Replay, "an open loop"},
		{"clients", l.Arrival == probe.Closed, "a closed loop"},
		{"stagger", l.Arrival == probe.Closed, "a closed loop"},
		{"retry", l.Arrival != probe.Closed, "an open loop"},
		{"trace-speed", l.Arrival == probe.Replay, "a replayed trace"},
	} {
		if set(f.name) && !f.means {
			return usage("--%s is of %s, and arrivals are %v; leave one out", f.name, f.of, l.Arrival)
		}
	}
	return nil
}

// readLevels reads the phases, and when the run ends.
func (o *loadOptions) readLevels(l *probe.Load) error {
	set := o.flags.Changed
	if !set("duration") && (o.steps != "" || o.ramp != "" || set("requests") || l.Arrival == probe.Replay) {
		l.Duration = 0
	}
	text, name := o.steps, "steps"
	switch {
	case o.ramp != "" && o.steps != "":
		return usage("--ramp and --steps: --steps takes ramps too, as 1-20:5m; give one of them")
	case o.ramp != "":
		text, name = o.ramp, "ramp"
	case o.steps == "":
		return nil
	}
	if l.Arrival == probe.Replay {
		return usage("--%s and arrivals of a trace: give one of them", name)
	}
	for _, level := range []string{"rate", "clients"} {
		if set(level) {
			return usage("--%s and --%s both say the level; give one of them, and --arrival poisson for requests a second", name, level)
		}
	}
	for part := range strings.SplitSeq(text, ",") {
		phase, err := parsePhase(part)
		if err != nil {
			return usage("--%s: %w", name, err)
		}
		l.Phases = append(l.Phases, phase)
	}
	return nil
}

// parsePhase reads LEVEL:TIME or FROM-TO:TIME, which is also the phase's name.
func parsePhase(text string) (probe.Phase, error) {
	wrong := fmt.Errorf("%q is no step: give LEVEL:TIME or FROM-TO:TIME, as 8:30s or 1-20:5m", text)
	levels, length, _ := strings.Cut(text, ":")
	from, to, isRamp := strings.Cut(levels, "-")
	if !isRamp {
		to = from
	}
	a, err1 := strconv.ParseFloat(from, 64)
	b, err2 := strconv.ParseFloat(to, 64)
	d, err3 := time.ParseDuration(length)
	if err1 != nil || err2 != nil || err3 != nil || d <= 0 || !(a >= 0) || !(b >= 0) {
		return probe.Phase{}, wrong
	}
	return probe.Phase{Name: text, Duration: d, From: a, To: b}, nil
}

func (o *loadOptions) readAdapters(l *probe.Load) error {
	for _, text := range o.adapters {
		name, weight, weighted := strings.Cut(text, "=")
		a := probe.Weighted{Model: name, Weight: 1}
		if weighted {
			v, err := strconv.ParseFloat(weight, 64)
			if err != nil || !(v > 0) {
				return usage("--adapters: %q is no weight: give NAME or NAME=WEIGHT with a weight above 0", text)
			}
			a.Weight = v
		}
		l.Adapters = append(l.Adapters, a)
	}
	return nil
}

func (o *loadOptions) readSLO(l *probe.Load) error {
	if o.slo == "" {
		return nil
	}
	slo, err := probe.ParseSLO(o.slo)
	if err != nil {
		return usage("--slo: %w", err)
	}
	l.SLO = slo
	return nil
}
