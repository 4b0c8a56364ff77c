package settings

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
)

// dashes returns the flag of an argument's name.
func dashes(name string) string { return "--" + strings.ReplaceAll(name, "_", "-") }

// quoted formats a value like Python's repr, as in vLLM's messages.
func quoted(s string) string {
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		return `"` + s + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", `\'`) + "'"
}

// wholeNumber returns the value of a flag, a whole number of at least least; given is false if the flag is not
// set.
func (p *parser) wholeNumber(name string, least int) (n int, given bool) {
	value, _, given := p.cfg.Value(name)
	if !given {
		return 0, false
	}
	n, _, ok := p.cfg.Int(name)
	switch {
	case !ok:
		p.refuse("argument %s: invalid int value: %s", dashes(name), quoted(value))
	case n < least:
		p.refuse("%s: Input should be greater than or equal to %d (got %s)", name, least, value)
	case n > maxWhole:
		p.refuse("%s: %s is more than the simulator can hold", name, value)
	}
	// A refused number is returned within its bounds, because parsing continues and other code
	// divides by it.
	return max(least, min(n, maxWhole)), true
}

// setWhole sets a number to the value of a flag, a whole number of at least least, if the flag is set.
func (p *parser) setWhole(into *int, name string, least int) {
	if n, given := p.wholeNumber(name, least); given {
		*into = n
	}
}

// maxWhole bounds whole numbers, so that the product of two does not overflow.
const maxWhole = 1 << 30

// inRange returns the value of a flag, a number within [low, high]; given is false if the flag is not set.
func (p *parser) inRange(name string, low, high float64) (f float64, given bool) {
	value, _, given := p.cfg.Value(name)
	if !given {
		return 0, false
	}
	f, _, ok := p.cfg.Float(name)
	switch {
	case !ok:
		p.refuse("argument %s: invalid float value: %s", dashes(name), quoted(value))
	case f < low:
		p.refuse("%s: Input should be greater than or equal to %v (got %s)", name, low, value)
	case f > high:
		p.refuse("%s: Input should be less than or equal to %v (got %s)", name, high, value)
	}
	return f, true
}

// choice returns the value of a flag, one of several words, or fallback if the flag is not set.
func (p *parser) choice(name, fallback string, options []string) string {
	value, _, given := p.cfg.Value(name)
	if !given {
		return fallback
	}
	if !slices.Contains(options, value) {
		all := make([]string, len(options))
		for i, o := range options {
			all[i] = quoted(o)
		}
		p.refuse("argument %s: invalid choice: %s (choose from %s)", dashes(name), quoted(value), strings.Join(all, ", "))
	}
	return value
}

// boolean returns the value of a switch, or fallback if it is not set.
func (p *parser) boolean(name string, fallback bool) bool {
	if b, _, given := p.cfg.Bool(name); given {
		return b
	}
	return fallback
}

// fallback returns vLLM's default of an argument in the simulated release and on the simulated hardware; "" if
// it has none.
func (p *parser) fallback(name string) string {
	value, _, _ := catalog.EngineOf(catalog.VLLM).FlagDefault(name, p.s.Release, p.hw)
	return value
}

// fallbackInt returns fallback as a number, or other if there is none.
func (p *parser) fallbackInt(name string, other int) int {
	n, err := strconv.Atoi(p.fallback(name))
	if err != nil {
		return other
	}
	return n
}

// gpuWord returns the Device of catalog.Hardware for a vendor's devices.
func gpuWord(g catalog.GPU) string {
	switch g.Vendor {
	case "amd":
		return "rocm"
	case "cpu":
		return "cpu"
	}
	return "cuda" // also for devices that a file describes
}
