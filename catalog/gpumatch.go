package catalog

import (
	"slices"
	"strings"
)

// gpuNoise lists words that name a vendor or a product line, not a product. VF is a virtual function of one.
var gpuNoise = strings.Fields("nvidia geforce tesla amd instinct gpu generation edition vf")

// gpuKeys returns the key of a GPU's name: in lower case, without separators and noise.
func gpuKeys(name string) []string {
	key := strings.Join(slices.DeleteFunc(tokenize(name), func(t string) bool { return slices.Contains(gpuNoise, t) }), "")
	if key == "" {
		return nil
	}
	return []string{key}
}

func newGPUIndex(gpus []GPU, users int) index[GPU] {
	return newIndex("GPU", gpus, users, func(g GPU) []string { return append([]string{g.Name}, g.Aliases...) }, gpuKeys)
}

// FindGPU returns the GPU that has a name or an alias, as NVML reports it ("NVIDIA H100 80GB HBM3") or
// as people write it ("h100-sxm", "RTX 4090"), in any case and with any separators. vramBytes is the
// device's memory as NVML reports it, 0 if unknown; it decides between entries that share the name.
// The error is an *AmbiguousError if several entries have it, and wraps ErrUnknown if none does.
func (c *Catalog) FindGPU(name string, vramBytes float64) (GPU, error) {
	x := c.gpus()
	found := x.find(name)
	if len(found) > 1 && vramBytes > 0 {
		if near := slices.DeleteFunc(slices.Clone(found), func(i int) bool { return !x.entries[i].memoryNear(vramBytes) }); len(near) > 0 {
			found = near
		}
	}
	switch len(found) {
	case 0:
		return GPU{}, x.unknown(name)
	case 1:
		return x.entries[found[0]], nil
	}
	return GPU{}, x.ambiguous(name, found)
}

const gib = 1 << 30

// memoryNear reports whether the memory that NVML reports is that of the entry within 8 %: error
// correction takes a sixteenth of the memory of some cards.
func (g GPU) memoryNear(vramBytes float64) bool { return within(vramBytes/gib, g.VRAMGiB, 0.08) }

// within reports whether a is in b*(1-share)..b*(1+share).
func within(a, b, share float64) bool { return a >= b*(1-share) && a <= b*(1+share) }
