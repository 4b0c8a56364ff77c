package proberun

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/collect/loadgen"
)

// load returns the load of the flags, or an error if they are invalid.
func (o *LoadOptions) load() (*loadgen.Load, error) {
	l := &o.offered
	l.Together = o.flags.Changed("stagger") && l.Stagger == 0
	for _, read := range []func(*loadgen.Load) error{o.readStyle, o.readLengths, o.readTrace, o.readArrival, o.readLevels, o.readAdapters, o.readSLO} {
		if err := read(l); err != nil {
			return nil, err
		}
	}
	if err := l.Validate(); err != nil {
		return nil, cli.Usagef("load: %s", oneLine(err))
	}
	return l, nil
}

func (o *LoadOptions) readStyle(l *loadgen.Load) error {
	switch o.style {
	case "auto", "words":
	case "characters":
		l.Style = loadgen.Characters
	default:
		return cli.Usagef("--prompt-style is auto, words or characters, not %q", o.style)
	}
	return nil
}

func (o *LoadOptions) readLengths(l *loadgen.Load) error {
	read := func(name string) ([]byte, error) { return cli.ReadFile(name, 64<<20) }
	for _, f := range []struct {
		name, text string
		to         *loadgen.Lengths
	}{
		{"prompt-tokens", o.prompt, &l.PromptTokens}, {"output-tokens", o.answer, &l.OutputTokens}, {"turns", o.turns, &l.Turns},
	} {
		lengths, err := loadgen.ParseLengths(f.text, read)
		if err != nil {
			return cli.Usagef("--%s: %w", f.name, err)
		}
		*f.to = lengths
	}
	think, err := loadgen.ParseDelay(o.think)
	if err != nil {
		return cli.Usagef("--think: %w", err)
	}
	l.Think = think
	return nil
}

func (o *LoadOptions) readTrace(l *loadgen.Load) error {
	if o.trace == "" {
		if o.flags.Changed("trace-speed") {
			return cli.Usagef("--trace-speed needs a --trace")
		}
		return nil
	}
	for _, name := range []string{"prompt-tokens", "output-tokens", "turns", "prefix-tokens"} {
		if o.flags.Changed(name) {
			return cli.Usagef("--%s and --trace: a trace has lengths of its own; give one of them", name)
		}
	}
	trace, err := readTrace(o.trace)
	if err != nil {
		return cli.Usagef("--trace: %w", err)
	}
	l.Trace = trace
	return nil
}

// readArrival determines the arrival process, and rejects flags that do not apply to it.
func (o *LoadOptions) readArrival(l *loadgen.Load) error {
	set := o.flags.Changed
	switch {
	case o.arrival != "":
		arrival, err := loadgen.ParseArrival(o.arrival)
		if err != nil {
			return cli.Usagef("--arrival: %w", err)
		}
		l.Arrival = arrival
	case set("rate"):
		l.Arrival = loadgen.Poisson
	case l.Trace != nil && !set("clients") && !set("steps"):
		l.Arrival = loadgen.Replay
	}
	if set("burstiness") {
		if !(o.burstiness > 0 && o.burstiness <= 1e6) {
			return cli.Usagef("--burstiness must be above 0, not %v", o.burstiness)
		}
		if l.Arrival == loadgen.Poisson && o.arrival == "" {
			l.Arrival = loadgen.Gamma
		}
		if l.Arrival != loadgen.Gamma {
			return cli.Usagef("--burstiness is of gamma arrivals, not of %v ones; give --rate", l.Arrival)
		}
	}
	l.CV = 1 / math.Sqrt(o.burstiness)
	for _, f := range []struct {
		name  string
		means bool
		of    string
	}{
		{"rate", l.Arrival != loadgen.Closed && l.Arrival != loadgen.Replay, "an open loop"},
		{"clients", l.Arrival == loadgen.Closed, "a closed loop, whose clients wait for their answers"},
		{"stagger", l.Arrival == loadgen.Closed, "a closed loop"},
		{"retry", l.Arrival != loadgen.Closed, "an open loop"},
		{"trace-speed", l.Arrival == loadgen.Replay, "a replayed trace"},
	} {
		if set(f.name) && !f.means {
			arrivals := fmt.Sprintf("arrivals are %v", l.Arrival)
			if o.arrival == "" && set("rate") {
				arrivals = "--rate makes an open one"
			}
			return cli.Usagef("--%s is for %s, but %s: leave one of them out", f.name, f.of, arrivals)
		}
	}
	return nil
}

// readLevels reads the phases, and the end of the run.
func (o *LoadOptions) readLevels(l *loadgen.Load) error {
	set := o.flags.Changed
	if !set("duration") && (o.steps != "" || set("requests") || l.Arrival == loadgen.Replay) {
		l.Duration = 0
	}
	if o.steps == "" {
		return nil
	}
	if l.Arrival == loadgen.Replay {
		return cli.Usagef("--steps and arrivals of a trace: give one of them")
	}
	for _, level := range []string{"rate", "clients"} {
		if set(level) {
			return cli.Usagef("--steps and --%s both give the level: give one of them, and --arrival poisson for requests a second", level)
		}
	}
	for part := range strings.SplitSeq(o.steps, ",") {
		phase, err := parsePhase(part)
		if err != nil {
			return cli.Usagef("--steps: %w", err)
		}
		l.Phases = append(l.Phases, phase)
	}
	return nil
}

// parsePhase parses LEVEL:TIME or FROM-TO:TIME, which is also the phase's name.
func parsePhase(text string) (loadgen.Phase, error) {
	wrong := fmt.Errorf("%q is not a step: give LEVEL:TIME or FROM-TO:TIME, as 8:30s or 1-20:5m", text)
	levels, length, _ := strings.Cut(text, ":")
	from, to, isRamp := strings.Cut(levels, "-")
	if !isRamp {
		to = from
	}
	a, err1 := strconv.ParseFloat(from, 64)
	b, err2 := strconv.ParseFloat(to, 64)
	d, err3 := time.ParseDuration(length)
	if err1 != nil || err2 != nil || err3 != nil || d <= 0 || !(a >= 0) || !(b >= 0) {
		return loadgen.Phase{}, wrong
	}
	return loadgen.Phase{Name: text, Duration: d, From: a, To: b}, nil
}

func (o *LoadOptions) readAdapters(l *loadgen.Load) error {
	for _, text := range o.adapters {
		name, weight, weighted := strings.Cut(text, "=")
		a := loadgen.Weighted{Model: name, Weight: 1}
		if weighted {
			v, err := strconv.ParseFloat(weight, 64)
			if err != nil || !(v > 0) {
				return cli.Usagef("--adapters: %q is not a weight: give NAME or NAME=WEIGHT with a weight above 0", text)
			}
			a.Weight = v
		}
		l.Adapters = append(l.Adapters, a)
	}
	return nil
}

func (o *LoadOptions) readSLO(l *loadgen.Load) error {
	if len(o.slo) == 0 {
		return nil
	}
	slo, err := loadgen.ParseSLO(strings.Join(o.slo, ","))
	if err != nil {
		return cli.Usagef("--slo: %w", err)
	}
	l.SLO = slo
	return nil
}
