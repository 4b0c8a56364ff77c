package launch

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Int returns a flag as a whole number, with suffixes as in vLLM: 1k is 1000, 25.6k is
// 25600, 1K is 1024. max_model_len given as "auto" is -1, which vLLM uses for "the largest
// that fits". ok is false if the flag is absent or not a number.
func (c *Config) Int(flag string) (n int, from Source, ok bool) {
	value, from, ok := c.Value(flag)
	if !ok {
		return 0, "", false
	}
	if c.grammar().canonical(flag) == "max_model_len" && strings.EqualFold(strings.TrimSpace(value), "auto") {
		return -1, from, true
	}
	n, ok = humanInt(value)
	if !ok {
		return 0, "", false
	}
	return n, from, true
}

// Float returns a flag as a finite number.
func (c *Config) Float(flag string) (f float64, from Source, ok bool) {
	value, from, ok := c.Value(flag)
	if !ok {
		return 0, "", false
	}
	f, err := strconv.ParseFloat(digits(value), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, "", false
	}
	return f, from, true
}

// Bool returns a flag as a boolean. ok is false if the flag is not given; vLLM's default
// then depends on its version and hardware.
func (c *Config) Bool(flag string) (b bool, from Source, ok bool) {
	value, from, ok := c.Value(flag)
	if !ok {
		return false, "", false
	}
	t := truth(value)
	return t.value, from, t.known
}

var human = regexp.MustCompile(`^(\d+(?:\.\d+)?)([kKmMgGtT])$`)

// humanInt parses a number as human_readable_int in vllm/utils/argparse_utils.py does:
// lower-case suffixes are powers of 1000, upper-case ones powers of 1024 without decimals.
func humanInt(s string) (int, bool) {
	s = strings.TrimSpace(s)
	if m := human.FindStringSubmatch(s); m != nil {
		power := 1 + strings.Index("kmgt", strings.ToLower(m[2]))
		if m[2] == strings.ToUpper(m[2]) {
			n, err := strconv.Atoi(m[1])
			if err != nil || n > math.MaxInt>>(10*power) {
				return 0, false
			}
			return n << (10 * power), true
		}
		f, err := strconv.ParseFloat(m[1], 64)
		f *= math.Pow10(3 * power)
		if err != nil || f >= math.MaxInt {
			return 0, false
		}
		return int(f), true
	}
	n, err := strconv.Atoi(digits(s))
	return n, err == nil
}

var underscore = regexp.MustCompile(`(\d)_(\d)`)

// digits removes what Python's number parsers accept and Go's do not: surrounding blanks
// and single underscores between digits.
func digits(s string) string {
	s = strings.TrimSpace(s)
	for {
		t := underscore.ReplaceAllString(s, "$1$2")
		if t == s {
			return s
		}
		s = t
	}
}
