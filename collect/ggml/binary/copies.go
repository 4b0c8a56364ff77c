package binary

import (
	"path/filepath"
	"slices"
	"strings"
)

// copiesOf separates the copies of GGML in one process, such as one in a speech-to-text library
// and one in a chat library. Each has a backend of its own. A file without a backend is added
// to the nearest backends that lack its functions. A copy with llama.cpp comes first. Files
// that no copy needs are unused.
func copiesOf(parts []part) (copies [][]part, unused []part) {
	var others []part
	for _, p := range parts {
		if p.hasBackend() {
			copies = append(copies, []part{p})
		} else {
			others = append(others, p)
		}
	}
	if len(copies) == 0 {
		copies = append(copies, nil)
	}
	for _, p := range others {
		if !addToNearest(copies, p) {
			unused = append(unused, p)
		}
	}
	first := slices.IndexFunc(copies, func(c []part) bool { return contains(c, (*part).hasLlama) })
	if first > 0 {
		copies = slices.Concat(copies[first:], copies[:first])
	}
	return copies, unused
}

// addToNearest adds a file to the nearest copies that lack its functions, and reports whether
// there are any.
func addToNearest(copies [][]part, p part) bool {
	nearest := -1
	for _, c := range copies {
		if lacks(c, p) {
			nearest = max(nearest, proximity(c, p))
		}
	}
	for i, c := range copies {
		if nearest >= 0 && lacks(c, p) && proximity(c, p) == nearest {
			copies[i] = append(c, p)
		}
	}
	return nearest >= 0
}

// lacks reports whether a copy lacks functions that a file has.
func lacks(c []part, p part) bool {
	return p.hasBase() && !contains(c, (*part).hasBase) || p.hasLlama() && !contains(c, (*part).hasLlama)
}

// contains reports whether a file of a copy satisfies a condition.
func contains(c []part, what func(*part) bool) bool {
	return slices.ContainsFunc(c, func(p part) bool { return what(&p) })
}

// proximity returns how close a file is to the first of a copy: 2 in the same directory, 1 in a
// parent or a subdirectory, 0 elsewhere.
func proximity(c []part, p part) int {
	if len(c) == 0 {
		return 0
	}
	a, b := filepath.Dir(c[0].image.Path), filepath.Dir(p.image.Path)
	switch {
	case a == b:
		return 2
	case strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/"):
		return 1
	}
	return 0
}
