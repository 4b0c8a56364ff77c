package settings

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ownKind is one of the simulator's flags with the function that sets it.
type ownKind struct {
	name string
	set  func(s *Settings, value string) error
}

// Bounds of simulated seconds per second: above MaxScale the CPU time of the loop would show in the clients'
// measurements; below MinScale wall durations overflow.
const (
	MinScale = 0.001
	MaxScale = 1000
)

var ownFlags = []ownKind{
	{"gpu", func(s *Settings, v string) error { s.GPU.Name = v; return nil }},
	{"gpus", func(s *Settings, v string) (err error) {
		if s.MachineGPUs, err = strconv.Atoi(v); err != nil || s.MachineGPUs < 1 || s.MachineGPUs > nodeGPUs {
			return fmt.Errorf("1 to %d is expected", nodeGPUs)
		}
		return nil
	}},
	{"seed", func(s *Settings, v string) (err error) {
		if s.Seed, err = strconv.ParseUint(v, 10, 64); err != nil {
			return errors.New("a whole number from 0 on is expected")
		}
		return nil
	}},
	{"scale", func(s *Settings, v string) (err error) {
		if s.Scale, err = strconv.ParseFloat(v, 64); err != nil || !(s.Scale >= MinScale && s.Scale <= MaxScale) {
			return errors.New("a number from 0.001 to 1000 is expected (simulated seconds per second)")
		}
		return nil
	}},
	{"dialect", func(s *Settings, v string) error {
		release := strings.TrimPrefix(v, "v")
		if parts := strings.Split(release, "."); len(parts) > 2 {
			release = parts[0] + "." + parts[1]
		}
		if !slices.Contains(Releases, release) {
			return fmt.Errorf("one of %s is expected", strings.Join(Releases, ", "))
		}
		s.Release = release
		return nil
	}},
	{"perf-file", func(s *Settings, v string) error { s.PerfFile = v; return nil }},
	{"scenario", func(s *Settings, v string) error { s.Scenario = v; return nil }},
	{"startup-time", func(s *Settings, v string) (err error) {
		s.StartupTime, err = parseSeconds(v)
		return err
	}},
	{"fault", func(s *Settings, v string) error {
		for one := range strings.SplitSeq(v, ",") {
			f, err := ParseFault(strings.TrimSpace(one))
			if err != nil {
				return err
			}
			s.Faults = append(s.Faults, f)
		}
		return nil
	}},
}

// takeOwn sets the simulator's flags of an argument vector and returns the rest.
func (s *Settings) takeOwn(argv []string) (rest []string, err error) {
	for i := 0; i < len(argv); i++ {
		word, value, inline := strings.Cut(argv[i], "=")
		name, ok := strings.CutPrefix(strings.ReplaceAll(word, "_", "-"), "--sim-")
		if !ok {
			rest = append(rest, argv[i])
			continue
		}
		k := slices.IndexFunc(ownFlags, func(f ownKind) bool { return f.name == name })
		switch {
		case k < 0:
			return nil, fmt.Errorf("unrecognized arguments: %s (the simulator has %s)", argv[i], ownNames())
		case inline:
		case i+1 < len(argv):
			i++
			value = argv[i]
		default:
			return nil, fmt.Errorf("argument --sim-%s: expected one argument", name)
		}
		if value == "" {
			return nil, fmt.Errorf("argument --sim-%s: a value is expected", name)
		}
		if err := ownFlags[k].set(s, value); err != nil {
			return nil, fmt.Errorf("argument --sim-%s: %q: %w", name, value, err)
		}
	}
	return rest, nil
}

func ownNames() string {
	var names []string
	for _, f := range ownFlags {
		names = append(names, "--sim-"+f.name)
	}
	return strings.Join(names, ", ")
}

// faultKinds maps the kinds of faults to the meaning of the value after x.
var faultKinds = map[string]string{"stall": "", "slow": "factor", "die": "", "reset": "", "network": "delay", "skew": "", "errors": "share"}

const faultForm = `kind@at[+for][xfactor][#rank] is expected, kind one of stall, slow, die, reset, network, skew, errors, as in slow@60s+30sx1.3#0 or network@10sx200ms`

// ParseFault parses a fault in the syntax of --sim-fault: "stall@60s+10s", "slow@1m+30sx1.4", "die@90s#1",
// "network@10sx200ms". Numbers without a unit are seconds.
func ParseFault(text string) (Fault, error) {
	bad := errors.New(faultForm)
	kind, rest, ok := strings.Cut(text, "@")
	takes, known := faultKinds[kind]
	if !ok || !known {
		return Fault{}, bad
	}
	f := Fault{Kind: kind, Rank: -1, Factor: 1}
	var err error
	rest, rank, given := strings.Cut(rest, "#")
	if given {
		if f.Rank, err = strconv.Atoi(rank); err != nil || f.Rank < 0 {
			return Fault{}, bad
		}
	}
	rest, by, given := strings.Cut(rest, "x")
	if given != (takes != "") {
		return Fault{}, bad
	}
	switch takes {
	case "factor", "share":
		most := map[string]float64{"factor": 1000, "share": 1}[takes]
		if f.Factor, err = strconv.ParseFloat(by, 64); err != nil || !(f.Factor > 0 && f.Factor <= most) {
			return Fault{}, fmt.Errorf("a %s above 0, at most %v, is expected after x", takes, most)
		}
	case "delay":
		if f.Delay, err = parseSeconds(by); err != nil {
			return Fault{}, err
		}
	}
	at, length, given := strings.Cut(rest, "+")
	if f.At, err = parseSeconds(at); err != nil {
		return Fault{}, err
	}
	if given {
		if f.For, err = parseSeconds(length); err != nil {
			return Fault{}, err
		}
		if f.For == 0 {
			return Fault{}, errors.New("a length above 0 is expected after +; without one the fault lasts for good")
		}
	}
	return f, nil
}

// UnmarshalText implements [encoding.TextUnmarshaler], with the syntax of ParseFault.
func (f *Fault) UnmarshalText(text []byte) (err error) {
	*f, err = ParseFault(string(text))
	return err
}

// CheckFault returns an error if the server does not have the rank of a fault.
func (s *Settings) CheckFault(f Fault) error {
	if ranks := max(1, s.DataParallel); f.Rank >= ranks {
		return fmt.Errorf("fault %s: there is no rank %d, only 0 to %d (--data-parallel-size %d)", f.Kind, f.Rank, ranks-1, ranks)
	}
	return nil
}

// parseSeconds parses a duration with a unit, or a number of seconds.
func parseSeconds(text string) (time.Duration, error) {
	const most = 1000 * time.Hour
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		if f >= 0 && f <= most.Seconds() {
			return time.Duration(math.Round(f * 1e9)), nil
		}
	} else if d, err := time.ParseDuration(text); err == nil && d >= 0 && d <= most {
		return d, nil
	}
	return 0, fmt.Errorf("%q is not a duration: use 30s, 2m or a number of seconds", text)
}
