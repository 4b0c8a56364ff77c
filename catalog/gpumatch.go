package catalog

import (
	"slices"
	"strconv"
	"strings"
)

// gpuName is a GPU's name as tokens, with its memory sizes (GB or GiB) apart: drivers, sellers and
// people round them differently. Power limits ("330 W cap") are omitted.
type gpuName struct {
	words words
	sizes []float64
}

// gpuNoise lists tokens that name a vendor or a product line, not a product.
var gpuNoise = newWords(strings.Fields(`nvidia geforce tesla amd instinct gpu generation edition graphics card
	accelerator tensor core cores nvgpu ac vf corporation module cap limit tdp`))

// gpuForms lists the form factors, without the number of the socket (SXM4, SXM5).
var gpuForms = newWords([]string{"sxm", "pcie", "nvl", "oam"})

func parseGPUName(s string) gpuName {
	var n gpuName
	var tokens []string
	fields := tokenize(s)
	for i := 0; i < len(fields); i++ {
		t := fields[i]
		if size, ok := memorySize(t); ok {
			n.sizes = append(n.sizes, size)
			continue
		}
		if number, unit := cutNumber(t); number != "" && (unit == "w" || unit == "" && i+1 < len(fields) && fields[i+1] == "w") {
			if unit == "" {
				i++
			}
			continue // a power limit
		}
		if i+1 < len(fields) && (fields[i+1] == "gb" || fields[i+1] == "gib") {
			if size, err := strconv.ParseFloat(t, 64); err == nil {
				n.sizes = append(n.sizes, size)
				i++
				continue
			}
		}
		for _, part := range splitGPUToken(t) {
			if !gpuNoise.has(part) {
				tokens = append(tokens, part)
			}
		}
	}
	n.words = newWords(tokens)
	return n
}

// memorySize returns the number in "80gb", "80gib" or "144g", in the unit that is written.
func memorySize(t string) (float64, bool) {
	number, unit := cutNumber(t)
	if number == "" || !slices.Contains([]string{"g", "gb", "gib"}, unit) {
		return 0, false
	}
	v, err := strconv.ParseFloat(number, 64)
	return v, err == nil
}

// cutNumber splits a token after its leading decimal number.
func cutNumber(t string) (number, unit string) {
	i := 0
	for i < len(t) && (t[i] >= '0' && t[i] <= '9' || t[i] == '.') {
		i++
	}
	return t[:i], t[i:]
}

// splitGPUToken splits tokens that people write together: rtx4090, h100pcie, a100sxm4. HGX and DGX
// become sxm, the form factor of their chips.
func splitGPUToken(t string) []string {
	switch t {
	case "hgx", "dgx":
		return []string{"sxm"}
	case "sxm2", "sxm3", "sxm4", "sxm5", "sxm6":
		return []string{"sxm"}
	}
	for _, prefix := range []string{"rtx", "gtx"} {
		if rest, ok := strings.CutPrefix(t, prefix); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
			return []string{prefix, rest}
		}
	}
	stem := strings.TrimRight(t, "0123456789")
	for _, form := range []string{"sxm", "pcie"} {
		if chip, ok := strings.CutSuffix(stem, form); ok && strings.ContainsAny(chip, "0123456789") {
			return []string{chip, form}
		}
	}
	return []string{t}
}

// gpuIndex holds the GPUs with their names as tokens.
type gpuIndex struct {
	index[GPU]
	names [][]gpuName // name and aliases of an entry
	arch  []words
}

func newGPUIndex(gpus []GPU, users int) gpuIndex {
	x := gpuIndex{index: index[GPU]{kind: "GPU", title: func(g GPU) string { return g.Name }, entries: gpus, users: users}}
	for _, g := range gpus {
		var names []gpuName
		var tokens []string
		for _, name := range append([]string{g.Name}, g.Aliases...) {
			n := parseGPUName(name)
			names, tokens = append(names, n), append(tokens, n.words...)
		}
		x.names = append(x.names, names)
		x.all = append(x.all, newWords(tokens))
		x.arch = append(x.arch, newWords(tokenize(g.Arch)))
	}
	return x
}

// FindGPU returns the GPU of that name, as NVML reports it ("NVIDIA H100 80GB HBM3") or as people
// write it ("h100-sxm", "RTX 4090"). Tokens are compared as a whole and without case; a complete
// name takes precedence over a part of a longer one. vramBytes is the device's memory as NVML
// reports it, 0 if unknown; it decides between entries that the name matches equally. The error is
// an *AmbiguousError if several entries match, and wraps ErrUnknown if none does.
func (c *Catalog) FindGPU(name string, vramBytes float64) (GPU, error) {
	x := c.gpus()
	q := parseGPUName(name)
	for _, fits := range []func(i int) bool{
		func(i int) bool { return x.matchesName(i, q) },
		func(i int) bool { return x.matchesPart(i, q) },
		func(i int) bool { return x.matchesLonger(i, q) },
	} {
		var found []int
		for i := range x.entries {
			if x.sizesFit(i, q.sizes) && fits(i) {
				found = append(found, i)
			}
		}
		found = x.preferUsers(found)
		if len(found) > 1 && vramBytes > 0 {
			if near := slices.DeleteFunc(slices.Clone(found), func(i int) bool { return !x.memoryNear(i, vramBytes) }); len(near) > 0 {
				found = near
			}
		}
		switch len(found) {
		case 0:
			continue
		case 1:
			return x.entries[found[0]], nil
		}
		return GPU{}, x.ambiguous(name, found)
	}
	digits := slices.DeleteFunc(slices.Clone(q.words), func(t string) bool { return !hasDigit(t) })
	return GPU{}, x.unknown(name, digits)
}

// matchesName reports whether the query has exactly the tokens of one of the entry's names; kinds of
// memory that the name omits do not count.
func (x gpuIndex) matchesName(i int, q gpuName) bool {
	plain := q.words.withoutMemoryTypes()
	return len(plain) > 0 && slices.ContainsFunc(x.names[i], func(n gpuName) bool {
		return slices.Equal(n.words, q.words) || slices.Equal(n.words, plain)
	})
}

// matchesPart reports whether the query's tokens are a part of the entry's, including one with a
// digit, which distinguishes products.
func (x gpuIndex) matchesPart(i int, q gpuName) bool {
	rest := q.words.minus(x.arch[i]).withoutMemoryTypes()
	return slices.ContainsFunc(rest, hasDigit) && rest.subsetOf(x.all[i])
}

func hasDigit(t string) bool { return strings.ContainsAny(t, "0123456789") }

// withoutMemoryTypes returns the tokens without hbm2e, gddr6x and the like. They are part of a name
// (the SXM form of the H100 has HBM3) but do not identify a product alone.
func (w words) withoutMemoryTypes() words {
	return slices.DeleteFunc(slices.Clone(w), func(t string) bool {
		return strings.HasPrefix(t, "hbm") || strings.HasPrefix(t, "gddr")
	})
}

// matchesLonger reports whether the query has all tokens of one of the entry's names and no others
// that could name another product: only its architecture, a kind of memory, or the form factor if
// the entry does not state one.
func (x gpuIndex) matchesLonger(i int, q gpuName) bool {
	hasForm := len(x.all[i].minus(gpuForms)) < len(x.all[i])
	for _, n := range x.names[i] {
		if len(n.words) == 0 || !n.words.subsetOf(q.words) {
			continue
		}
		rest := q.words.minus(x.all[i]).minus(x.arch[i]).withoutMemoryTypes()
		if !hasForm {
			rest = rest.minus(words{pick(x.entries[i].hasNVLink(), "sxm", "pcie")})
		}
		if len(rest) == 0 {
			return true
		}
	}
	return false
}

// hasNVLink reports whether the GPU is known to have NVLink.
func (g GPU) hasNVLink() bool { return g.NVLinkGBs != nil && *g.NVLinkGBs > 0 }

// sizesFit reports whether every size of the query is in the entry's names, or equals its memory
// within 1.5 %, in GiB or in GB (a 48 GB card shows 44.99 GiB).
func (x gpuIndex) sizesFit(i int, sizes []float64) bool {
	vram, named := x.entries[i].VRAMGiB, x.sizes(i)
	for _, size := range sizes {
		if slices.Contains(named, size) || vram == 0 && len(named) == 0 {
			continue
		}
		if !within(size, vram, 0.015) && !within(size, vram*gib/1e9, 0.015) {
			return false
		}
	}
	return true
}

const gib = 1 << 30

// memoryNear reports whether the memory that NVML reports is that of the entry within 8 %: error
// correction takes a sixteenth of the memory of some cards.
func (x gpuIndex) memoryNear(i int, vramBytes float64) bool {
	if vram := x.entries[i].VRAMGiB; vram > 0 {
		return within(vramBytes/gib, vram, 0.08)
	}
	return slices.ContainsFunc(x.sizes(i), func(size float64) bool { return within(vramBytes/gib, size, 0.08) })
}

// sizes returns the memory sizes in an entry's names.
func (x gpuIndex) sizes(i int) []float64 {
	var out []float64
	for _, n := range x.names[i] {
		out = append(out, n.sizes...)
	}
	return out
}

// within reports whether a is in b*(1-share)..b*(1+share).
func within(a, b, share float64) bool { return a >= b*(1-share) && a <= b*(1+share) }
