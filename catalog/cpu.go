package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// CPU is a series of CPU models with the same memory channels and vector units, as data sheets
// describe them, per socket. Clocks and transfer rates are the highest of the series, so that
// peaks derived from them are upper bounds. 0 means unknown.
type CPU struct {
	Name string `yaml:"name"` // of the series: "AMD EPYC 9004"
	// Models are the parts of the kernel's CPU names that identify a model ("EPYC 9654").
	Models []string `yaml:"models,omitempty"`
	Vendor string   `yaml:"vendor"` // nvidia, amd, intel, cpu, other
	Arch   string   `yaml:"arch,omitempty"`

	MemChannels int     `yaml:"mem_channels"`
	ChannelBits int     `yaml:"channel_bits,omitempty"` // width of a channel, 0 means 64
	TransferMTs float64 `yaml:"transfer_mt_s"`          // 1e6 transfers per second

	// Operations of one core per cycle; a multiply-add counts as two.
	FP32PerCycle int     `yaml:"fp32_flops_per_cycle,omitempty"`
	INT8PerCycle int     `yaml:"int8_ops_per_cycle,omitempty"`
	MaxGHz       float64 `yaml:"max_ghz,omitempty"` // highest boost of any of the models

	Source string `yaml:"source"`
}

// MemBandwidth returns the peak memory bandwidth of a socket, in bytes per second.
func (c CPU) MemBandwidth() float64 {
	return float64(c.MemChannels) * float64(cmp.Or(c.ChannelBits, 64)) / 8 * c.TransferMTs * 1e6
}

// newCPUIndex returns an index without keys: the kernel's names contain those of an entry.
func newCPUIndex(cpus []CPU, users int) index[CPU] {
	return newIndex("CPU", cpus, users, func(c CPU) []string { return append([]string{c.Name}, c.Models...) }, func(string) []string { return nil })
}

// ErrNoModel is wrapped by the error of a CPU name that contains no model: hypervisors hide it.
var ErrNoModel = errors.New("names no model, as in many virtual machines")

// CPUs returns all CPUs: the user's, then the embedded ones, each in file order.
func (c *Catalog) CPUs() []CPU { return slices.Clone(c.cpus().entries) }

// FindCPU returns the CPU of that name, as the kernel reports it ("AMD EPYC 9654 96-Core
// Processor") or as people write it. A name matches an entry if it contains all tokens of its
// name or of one of its models. Tokens are compared as a whole and without case: "9654" does not
// match "9654P". The error is an *AmbiguousError if several entries match. It wraps ErrUnknown if
// none does, and ErrNoModel if the name contains no model.
func (c *Catalog) FindCPU(name string) (CPU, error) {
	x := c.cpus()
	q := tokenize(name)
	lacking := func(t string) bool { return !slices.Contains(q, t) }
	contained := func(name string) bool {
		words := tokenize(name)
		return len(words) > 0 && !slices.ContainsFunc(words, lacking)
	}
	var found []int
	for i, c := range x.entries {
		if slices.ContainsFunc(x.names(c), contained) {
			found = append(found, i)
		}
	}
	found = preferUsers(found, x.users)
	switch {
	case len(found) == 1:
		return x.entries[found[0]], nil
	case len(found) > 1:
		return CPU{}, x.ambiguous(name, found)
	case !strings.ContainsAny(name, "0123456789"):
		return CPU{}, fmt.Errorf("CPU %q is %w: it %w; describe it in a --catalog FILE", name, ErrUnknown, ErrNoModel)
	}
	return CPU{}, fmt.Errorf("CPU %q is %w: describe it in a --catalog FILE", name, ErrUnknown)
}
