package rules

import (
	"strconv"
	"strings"
)

// olderThan compares dotted versions number by number; what is not a number
// counts as 0.
func olderThan(version, limit string) bool {
	a, b := strings.Split(version, "."), strings.Split(limit, ".")
	for i := range max(len(a), len(b)) {
		if x, y := part(a, i), part(b, i); x != y {
			return x < y
		}
	}
	return false
}

// part returns the i-th number of a version.
func part(v []string, i int) int {
	if i >= len(v) {
		return 0
	}
	digits := strings.TrimFunc(v[i], func(r rune) bool { return r < '0' || r > '9' })
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}
