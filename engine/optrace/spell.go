package optrace

import (
	"fmt"
	"math"
	"time"
)

// Sentences of findings spell numbers for people: two or three significant digits.

func spellPercent(ratio float64) string {
	p := ratio * 100
	if math.Abs(p) < 9.95 {
		return fmt.Sprintf("%.2g %%", p)
	}
	return fmt.Sprintf("%.0f %%", p)
}

func spellBytes(v float64) string { return spellScaled(v, "B") }

func spellScaled(v float64, unit string) string {
	for _, s := range [...]struct {
		from   float64
		prefix string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(v) >= s.from*0.9995 {
			return spellThree(v/s.from) + " " + s.prefix + unit
		}
	}
	return spellThree(v) + " " + unit
}

// spellThree writes three significant digits without an exponent.
func spellThree(v float64) string {
	switch a := math.Abs(v); {
	case a >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case a >= 9.995:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.3g", v)
	}
}

func spellTime(d time.Duration) string {
	switch s := d.Seconds(); {
	case s >= 0.9995:
		return spellThree(s) + " s"
	case s >= 0.9995e-3:
		return spellThree(s*1e3) + " ms"
	default:
		return spellThree(s*1e6) + " µs"
	}
}

// spellThreads is a number of threads in words.
func spellThreads(n int) string {
	if n == 1 {
		return "1 thread"
	}
	return fmt.Sprintf("%d threads", n)
}
