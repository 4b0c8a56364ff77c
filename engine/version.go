package engine

import (
	"strconv"
	"strings"
)

// OlderThan compares dotted versions number by number; a part without digits counts as 0.
func OlderThan(version, limit string) bool {
	a, b := strings.Split(version, "."), strings.Split(limit, ".")
	for i := range max(len(a), len(b)) {
		if x, y := versionPart(a, i), versionPart(b, i); x != y {
			return x < y
		}
	}
	return false
}

// versionPart returns the i-th number of a version.
func versionPart(v []string, i int) int {
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
