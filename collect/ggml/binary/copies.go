package binary

import (
	"path/filepath"
	"slices"
	"strings"
)

// copiesOf tells the copies of GGML apart that lie in one process, as where one library
// turns speech into text and another answers it. Each computes through a backend of its own.
// What a backend's file lacks is in files near it: each file goes to the nearest backend
// that lacks what it has. One with llama.cpp comes first. Files that no copy needs are
// unused.
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
		if !join(copies, p) {
			unused = append(unused, p)
		}
	}
	first := slices.IndexFunc(copies, func(c []part) bool { return holds(c, (*part).hasLlama) })
	if first > 0 {
		copies = slices.Concat(copies[first:], copies[:first])
	}
	return copies, unused
}

// join adds a file to the copies nearest to it that lack what it has, and says whether there
// are any.
func join(copies [][]part, p part) bool {
	nearest := -1
	for _, c := range copies {
		if lacks(c, p) {
			nearest = max(nearest, near(c, p))
		}
	}
	for i, c := range copies {
		if nearest >= 0 && lacks(c, p) && near(c, p) == nearest {
			copies[i] = append(c, p)
		}
	}
	return nearest >= 0
}

// lacks says whether a copy lacks something that a file has.
func lacks(c []part, p part) bool {
	return p.hasBase() && !holds(c, (*part).hasBase) || p.hasLlama() && !holds(c, (*part).hasLlama)
}

// holds says whether a file of a copy has something.
func holds(c []part, what func(*part) bool) bool {
	return slices.ContainsFunc(c, func(p part) bool { return what(&p) })
}

// near is how near a file lies to the first of a copy: in the same folder, in one above or
// below it, or elsewhere.
func near(c []part, p part) int {
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
