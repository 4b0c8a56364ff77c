package ggml

import (
	"errors"
	"fmt"
	"math"

	layouts "github.com/rooftop-dev/rooftop/collect/ggml/binary"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// errNoMemory is the error if a target's memory cannot be read, such as that of a recording.
var errNoMemory = errors.New("the target's memory cannot be read")

// readTensor is a decoded tensor.
type readTensor struct {
	shape   optrace.Tensor
	op, sub string
	params  [16]int32
	sources []uint64 // by slot, 0 if empty; valid until the next tensor is read
	view    uint64
	bytes   int64 // size of its data, by its strides
}

// rawSize returns how many bytes of a tensor a record has, a multiple of 8.
func rawSize(l *layouts.Layout) int {
	if n := l.Bytes(); n > 0 {
		return (n + 7) &^ 7
	}
	return defaultRaw
}

// read decodes a tensor's bytes, and counts how often the layout fits.
func (d *Decoder) read(raw []byte) (readTensor, bool) {
	t := &d.read0
	err := layouts.DecodeTensor(t, raw, &d.layout, &d.names)
	if err == nil {
		d.fits++
		return readTensor{
			shape: optrace.Tensor{Name: t.Name, Type: t.Type, NE: t.NE, NB: t.NB},
			op:    t.Op, sub: t.Sub, params: t.Params, sources: t.Sources[:d.layout.Slots], view: t.View, bytes: d.sizeOf(t),
		}, true
	}
	d.misfits++
	if d.withheld == "" && d.misfits >= minMisfits && d.misfits*misfitsPerFit > d.fits {
		d.withheld = fmt.Sprintf("%d of the first %d tensors do not fit the layout that was read from the runtime's files (%v)",
			d.misfits, d.misfits+d.fits, err)
	}
	return readTensor{}, false
}

// verified reports whether enough tensors fit the layout.
func (d *Decoder) verified() bool { return d.withheld == "" && d.fits >= maxPlausible }

// sizeOf returns the size of a tensor's data in bytes, like ggml_nbytes (ggml.c).
func (d *Decoder) sizeOf(t *layouts.RawTensor) int64 {
	block := 1
	var size uint64
	if n := int(t.TypeNumber); n >= 0 && n < len(d.names.Types) {
		block, size = d.names.Types[n].Block, uint64(d.names.Types[n].Bytes)
	}
	first := 0
	if block > 1 {
		size = uint64(t.NE[0]) * t.NB[0] / uint64(block)
		first = 1
	}
	for i := first; i < len(t.NE); i++ {
		size += uint64(t.NE[i]-1) * t.NB[i]
	}
	if size > math.MaxInt64 {
		return 0
	}
	return int64(size)
}
