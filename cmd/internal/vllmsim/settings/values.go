package settings

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
)

// dashes spells a canonical name as a flag.
func dashes(name string) string { return "--" + strings.ReplaceAll(name, "_", "-") }

// quoted writes a value as Python's repr does, which vLLM's messages show.
func quoted(s string) string {
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		return `"` + s + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", `\'`) + "'"
}

// whole reads a whole number of at least min; given is false where the flag is
// not set.
func (p *parser) whole(name string, least int) (n int, given bool) {
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
	// What was refused comes back within its bounds: reading goes on, and others
	// divide by it.
	return max(least, min(n, maxWhole)), true
}

// maxWhole bounds whole numbers, so that the product of two stays one.
const maxWhole = 1 << 30

// real reads a number within [low, high].
func (p *parser) real(name string, low, high float64) (f float64, given bool) {
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

// choice reads one of several words; fallback stands where the flag is not set.
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

// truth reads a switch.
func (p *parser) truth(name string, fallback bool) bool {
	if b, _, given := p.cfg.Bool(name); given {
		return b
	}
	return fallback
}

// fallback is vLLM's default of an argument in the release and on the hardware
// at hand; "" where it has none.
func (p *parser) fallback(name string) string {
	value, _, _ := p.catalog.FlagDefault(name, p.s.Release, p.hw)
	return value
}

// fallbackInt is fallback as a number; other stands where there is none.
func (p *parser) fallbackInt(name string, other int) int {
	n, err := strconv.Atoi(p.fallback(name))
	if err != nil {
		return other
	}
	return n
}

// gpuWord is the word catalog.Hardware has for a vendor's devices.
func gpuWord(g catalog.GPU) string {
	switch g.Vendor {
	case "nvidia":
		return "cuda"
	case "amd":
		return "rocm"
	case "cpu":
		return "cpu"
	}
	return "cuda" // a device of a file of its own, like the common kind
}
