package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
)

// WriteCPUs lists CPUs: figures first, so that long names stand at the end.
func WriteCPUs(w io.Writer, cpus []catalog.CPU, o Options) error {
	p := newPage(w, o)
	p.title("CPUs", "memory of a socket in GB/s, operations of a core in a cycle, highest clock in GHz")
	t := &table{}
	t.add(p.heads("GB/s", "channels", "MT/s", "f32", "int8", "GHz", "name")...)
	for i := range cpus {
		c := &cpus[i]
		t.add(p.plainCell(c.MemBandwidth()/1e9), p.plainCell(float64(c.MemChannels)), p.plainCell(c.TransferMTs), p.plainCell(float64(c.FP32PerCycle)),
			p.plainCell(float64(c.INT8PerCycle)), p.plainCell(c.MaxGHz), cell{t: p.text(strong, c.Name)})
	}
	p.table(indent, t)
	return p.flush()
}

// WriteCPU writes one CPU with everything known of it and where from.
func WriteCPU(w io.Writer, c catalog.CPU, o Options) error {
	p := newPage(w, o)
	p.entry(c.Name, strings.Join(nonEmpty(c.Vendor, c.Arch), ", "), c.Models)
	bits := c.ChannelBits
	if bits == 0 {
		bits = 64
	}
	p.pairs([]pair{
		{"memory bandwidth", "GB/s", peak(c.MemBandwidth() / 1e9), "of a socket, all channels"},
		{"channels", "", peak(float64(c.MemChannels)), fmt.Sprintf("of %d bits", bits)},
		{"transfers", "e6/s", peak(c.TransferMTs), "the fastest memory that is supported"},
		{"f32", "", peak(float64(c.FP32PerCycle)), "operations of a core in a cycle"},
		{"int8", "", peak(float64(c.INT8PerCycle)), "operations of a core in a cycle"},
		{"clock", "GHz", peak(c.MaxGHz), "the highest boost of its models"},
	})
	p.sources(c.Source, nil)
	return p.flush()
}
