package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// CPU is the models of a CPU that have the same memory and vector units, as data sheets
// describe them, for each socket. Clocks and transfer rates are the highest of them: what
// follows is an upper end. A zero is unknown.
type CPU struct {
	Name string `yaml:"name"` // of the series: "AMD EPYC 9004"
	// Models are what their names hold, as the kernel reports them ("EPYC 9654").
	Models []string `yaml:"models,omitempty"`
	Vendor string   `yaml:"vendor"` // nvidia, amd, intel, cpu, other
	Arch   string   `yaml:"arch,omitempty"`

	MemChannels int     `yaml:"mem_channels"`
	ChannelBits int     `yaml:"channel_bits,omitempty"` // width of a channel, 0 is 64
	TransferMTs float64 `yaml:"transfer_mt_s"`          // 1e6 transfers per second

	// Operations of one core in a cycle; a multiply and an add are two.
	FP32PerCycle int     `yaml:"fp32_flops_per_cycle,omitempty"`
	INT8PerCycle int     `yaml:"int8_ops_per_cycle,omitempty"`
	MaxGHz       float64 `yaml:"max_ghz,omitempty"` // highest boost of any of the models

	Source string `yaml:"source"`
}

// MemBandwidth is what all channels of a socket transfer at most, in bytes per second.
func (c CPU) MemBandwidth() float64 {
	bits := c.ChannelBits
	if bits == 0 {
		bits = 64
	}
	return float64(c.MemChannels) * float64(bits) / 8 * c.TransferMTs * 1e6
}

// cpuIndex holds the CPUs with their names as tokens.
type cpuIndex struct {
	entries []CPU
	names   [][]words // of the entry and its models
	all     []words
	users   int // the first entries are a user's
}

func newCPUIndex(cpus []CPU) cpuIndex {
	x := cpuIndex{entries: cpus}
	for _, c := range cpus {
		var names []words
		var tokens []string
		for _, name := range append([]string{c.Name}, c.Models...) {
			w := newWords(split(name))
			names = append(names, w)
			tokens = append(tokens, w...)
		}
		x.names = append(x.names, names)
		x.all = append(x.all, newWords(tokens))
	}
	return x
}

// ErrNoModel says that a CPU's name tells no model: hypervisors hide it.
var ErrNoModel = errors.New("names no model, as in many virtual machines")

// CPUs returns all CPUs: embedded ones in file order, a user's before them.
func (c *Catalog) CPUs() []CPU { return slices.Clone(c.cpus().entries) }

// FindCPU returns the CPU of that name, as the kernel reports it ("AMD EPYC 9654 96-Core
// Processor") or as people write it. Names are compared as whole tokens without case: a
// name has all tokens of one of an entry's models, "EPYC 9654" none of "EPYC 9654P". A
// name that fits several is an *AmbiguousError, one that fits none wraps ErrUnknown, and
// ErrNoModel too where it tells none.
func (c *Catalog) FindCPU(name string) (CPU, error) {
	x := c.cpus()
	q := newWords(split(name))
	var found []int
	for i := range x.entries {
		if slices.ContainsFunc(x.names[i], func(w words) bool { return len(w) > 0 && w.in(q) }) {
			found = append(found, i)
		}
	}
	switch found = preferUsers(found, x.users); len(found) {
	case 1:
		return x.entries[found[0]], nil
	case 0:
		return CPU{}, x.unknown(name, q)
	}
	err := &AmbiguousError{Kind: "CPU", Name: name}
	for _, i := range found {
		err.Candidates = append(err.Candidates, x.entries[i].Name)
	}
	return CPU{}, err
}

// unknown is the error of a name that fits no entry.
func (x cpuIndex) unknown(name string, q words) error {
	if !slices.ContainsFunc(q, hasDigit) {
		return fmt.Errorf("CPU %q is %w: it %w; describe it in a --catalog FILE", name, ErrUnknown, ErrNoModel)
	}
	near := nearest(q, len(x.entries), func(i int) words { return x.all[i] }, func(i int) string { return x.entries[i].Name })
	if len(near) == 0 {
		return fmt.Errorf("CPU %q is %w: describe it in a --catalog FILE", name, ErrUnknown)
	}
	return fmt.Errorf("CPU %q is %w (nearest: %s): describe it in a --catalog FILE", name, ErrUnknown, strings.Join(near, ", "))
}
