package catalog

import (
	"slices"
	"strconv"
	"strings"
)

// gpuName is a GPU's name as tokens: what names the product, and memory sizes
// in GB or GiB apart, since drivers, sellers and people round them differently.
// Power limits ("330 W cap") are left out.
type gpuName struct {
	words words
	sizes []float64
}

// Tokens that name a maker, a product line or a kind of memory, not a product.
var gpuNoise = newWords(strings.Fields(`nvidia geforce tesla amd instinct gpu generation edition graphics card
	accelerator tensor core cores nvgpu ac vf corporation module cap limit tdp`))

// gpuForms are the form factors; makers number their sockets (SXM4, SXM5).
var gpuForms = newWords([]string{"sxm", "pcie", "nvl", "oam"})

func parseGPUName(s string) gpuName {
	var n gpuName
	var tokens []string
	fields := split(s)
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

// memorySize reads "80gb", "80gib" or "144g" in the unit it is written in.
func memorySize(t string) (float64, bool) {
	number, unit := cutNumber(t)
	if number == "" || !slices.Contains([]string{"g", "gb", "gib"}, unit) {
		return 0, false
	}
	v, err := strconv.ParseFloat(number, 64)
	return v, err == nil
}

func cutNumber(t string) (number, unit string) {
	i := 0
	for i < len(t) && (t[i] >= '0' && t[i] <= '9' || t[i] == '.') {
		i++
	}
	return t[:i], t[i:]
}

// splitGPUToken separates what people write together: rtx4090, h100pcie,
// a100sxm4; HGX and DGX boards carry the SXM form of a chip.
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
	entries []GPU
	names   [][]gpuName // name and aliases of an entry
	all     []words     // every token of an entry's names
	arch    []words
	users   int // the first entries are a user's
}

func newGPUIndex(gpus []GPU) gpuIndex {
	x := gpuIndex{entries: gpus}
	for _, g := range gpus {
		names := []gpuName{parseGPUName(g.Name)}
		for _, alias := range g.Aliases {
			names = append(names, parseGPUName(alias))
		}
		var tokens []string
		for _, n := range names {
			tokens = append(tokens, n.words...)
		}
		x.names = append(x.names, names)
		x.all = append(x.all, newWords(tokens))
		x.arch = append(x.arch, newWords(split(g.Arch)))
	}
	return x
}

// FindGPU returns the GPU of that name. Names are compared as whole tokens
// without case: as NVML reports them ("NVIDIA H100 80GB HBM3") or as people
// write them ("h100-sxm", "RTX 4090"); the tokens of a whole name beat a part
// of a longer one. vramBytes is the device's memory as NVML tells it, 0 if
// unknown; it decides between entries that the name leaves open. A name that
// still fits several is an *AmbiguousError, one that fits none wraps
// ErrUnknown.
func (c *Catalog) FindGPU(name string, vramBytes float64) (GPU, error) {
	x := c.gpus()
	q := parseGPUName(name)
	for _, fits := range []func(i int) bool{
		func(i int) bool { return x.equal(i, q) },
		func(i int) bool { return x.saysLess(i, q) },
		func(i int) bool { return x.saysMore(i, q) },
	} {
		var found []int
		for i := range x.entries {
			if x.sizesFit(i, q.sizes) && fits(i) {
				found = append(found, i)
			}
		}
		found = preferUsers(found, x.users)
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
		err := &AmbiguousError{Kind: "GPU", Name: name}
		for _, i := range found {
			err.Candidates = append(err.Candidates, x.entries[i].Name)
		}
		return GPU{}, err
	}
	digits := slices.DeleteFunc(slices.Clone(q.words), func(t string) bool { return !hasDigit(t) })
	return GPU{}, unknown("GPU", name, nearest(digits, len(x.entries),
		func(i int) words { return x.all[i] }, func(i int) string { return x.entries[i].Name }))
}

// equal reports whether the query has exactly the tokens of one of the names,
// but for a kind of memory that the name leaves out.
func (x gpuIndex) equal(i int, q gpuName) bool {
	plain := q.words.withoutMemoryTypes()
	return len(plain) > 0 && slices.ContainsFunc(x.names[i], func(n gpuName) bool {
		return slices.Equal(n.words, q.words) || slices.Equal(n.words, plain)
	})
}

// saysLess reports whether the query's tokens are part of the entry's, one that
// tells products apart (it holds a digit) among them.
func (x gpuIndex) saysLess(i int, q gpuName) bool {
	rest := q.words.minus(x.arch[i]).withoutMemoryTypes()
	return slices.ContainsFunc(rest, hasDigit) && rest.in(x.all[i])
}

func hasDigit(t string) bool { return strings.ContainsAny(t, "0123456789") }

// withoutMemoryTypes drops hbm2e, gddr6x and the like. They are part of a name
// (the SXM form of the H100 is the one with HBM3) but settle nothing alone.
func (w words) withoutMemoryTypes() words {
	return slices.DeleteFunc(slices.Clone(w), func(t string) bool {
		return strings.HasPrefix(t, "hbm") || strings.HasPrefix(t, "gddr")
	})
}

// saysMore reports whether the query holds all tokens of one of the names, and
// beyond them nothing that could name another product: its architecture, a kind
// of memory, or the form factor where the entry has no other.
func (x gpuIndex) saysMore(i int, q gpuName) bool {
	hasForm := len(x.all[i].minus(gpuForms)) < len(x.all[i])
	for _, n := range x.names[i] {
		if len(n.words) == 0 || !n.words.in(q.words) {
			continue
		}
		rest := q.words.minus(x.all[i]).minus(x.arch[i]).withoutMemoryTypes()
		if !hasForm {
			if x.entries[i].linked() {
				rest = rest.minus(words{"sxm"})
			} else {
				rest = rest.minus(words{"pcie"})
			}
		}
		if len(rest) == 0 {
			return true
		}
	}
	return false
}

func (g GPU) linked() bool { return g.NVLinkGBs != nil && *g.NVLinkGBs > 0 }

// sizesFit reports whether every size of the query is one that the entry's
// names have, or its memory within 1.5 % in GiB or in GB (a 48 GB card shows
// 44.99 GiB).
func (x gpuIndex) sizesFit(i int, sizes []float64) bool {
	vram := x.entries[i].VRAMGiB
	var named []float64
	for _, n := range x.names[i] {
		named = append(named, n.sizes...)
	}
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

// memoryNear reports whether NVML's memory can be the entry's: within 8 %,
// because error correction takes a sixteenth of some cards.
func (x gpuIndex) memoryNear(i int, vramBytes float64) bool {
	if vram := x.entries[i].VRAMGiB; vram > 0 {
		return within(vramBytes/gib, vram, 0.08)
	}
	for _, n := range x.names[i] {
		for _, size := range n.sizes {
			if within(vramBytes/gib, size, 0.08) {
				return true
			}
		}
	}
	return false
}

func within(a, b, share float64) bool { return a >= b*(1-share) && a <= b*(1+share) }
