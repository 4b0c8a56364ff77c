package binary

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// RawTensor is one ggml_tensor as read from the target's memory.
type RawTensor struct {
	Name string
	// Op is GGML's name of the operator, "" if the table of names is unknown; OpNumber its
	// number. Sub is the function of UNARY and GLU.
	Op, Sub  string
	OpNumber int32
	// Type is the name of the number format, "" if unknown; TypeNumber its number.
	Type       string
	TypeNumber int32
	NE         [4]int64  // elements of each dimension
	NB         [4]uint64 // strides in bytes
	Params     [16]int32 // op_params
	Flags      int32
	// Sources are the addresses of its sources, 0 for an empty slot; their number is
	// [Layout.Slots].
	Sources    [maxSlots]uint64
	View, Data uint64 // addresses, 0 for none
}

// Errors of tensors that do not fit a layout. They are allocated once, because a wrong layout
// causes one for each event.
var (
	errShort    = errors.New("fewer bytes than the layout needs")
	errNoLayout = errors.New("the layout is not known")
	errName     = errors.New("the name is not printable text that ends with NUL")
)

// MisfitError is a field of a tensor with an impossible value.
type MisfitError struct {
	Field string
	Value int64
}

func (e *MisfitError) Error() string {
	return fmt.Sprintf("%s is %d, which no tensor has: the layout does not fit", e.Field, e.Value)
}

// maxElements is the largest plausible dimension.
const maxElements = 1 << 40

// DecodeTensor decodes the first [Layout.Bytes] bytes of a ggml_tensor into t, which is reused:
// nothing is allocated if the name is the same. It fails if the bytes cannot be a tensor (the
// layout is wrong, or memory was overwritten).
func DecodeTensor(t *RawTensor, raw []byte, l *Layout, n *Names) error {
	need := l.Bytes()
	if need == 0 {
		return errNoLayout
	}
	if len(raw) < need {
		return errShort
	}
	if err := t.readName(raw[l.Name : l.Name+nameBytes]); err != nil {
		return err
	}
	t.TypeNumber = int32At(raw, l.Type)
	t.OpNumber = int32At(raw, l.Op)
	t.Flags = int32At(raw, l.Flags)
	for i := range dimensions {
		t.NE[i] = int64(uint64At(raw, l.NE+8*i)) //nolint:gosec // signed in GGML
		t.NB[i] = uint64At(raw, l.NB+8*i)
	}
	for i := range t.Params {
		t.Params[i] = int32At(raw, l.Params+4*i)
	}
	for i := range t.Sources {
		t.Sources[i] = 0
		if i < l.Slots {
			t.Sources[i] = uint64At(raw, l.Src+pointerBytes*i)
		}
	}
	t.View = uint64At(raw, l.View)
	t.Data = uint64At(raw, l.Data)
	if err := t.name(n); err != nil {
		return err
	}
	return t.plausible(n)
}

func int32At(b []byte, at int) int32 { return int32(binary.LittleEndian.Uint32(b[at:])) } //nolint:gosec // signed in GGML

func uint64At(b []byte, at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }

// readName reads the name, and keeps the old string if it is equal.
func (t *RawTensor) readName(raw []byte) error {
	n := bytes.IndexByte(raw, 0)
	if n < 0 {
		return errName
	}
	for _, c := range raw[:n] {
		// GGML cuts names at 63 bytes, so the last character of a non-ASCII name may be
		// incomplete.
		if c < ' ' || c == 0x7f {
			return errName
		}
	}
	if t.Name != string(raw[:n]) {
		t.Name = string(raw[:n])
	}
	return nil
}

// name looks up the names of the operator and of the format.
func (t *RawTensor) name(n *Names) error {
	t.Op, t.Sub, t.Type = "", "", ""
	if len(n.Ops) > 0 {
		if t.OpNumber < 0 || int(t.OpNumber) >= len(n.Ops) {
			return &MisfitError{"op", int64(t.OpNumber)}
		}
		t.Op = n.Ops[t.OpNumber]
	}
	switch t.Op {
	case "UNARY":
		t.Sub = nameOf(n.Unary, t.Params[0])
	case "GLU":
		t.Sub = nameOf(n.GLU, t.Params[0])
	}
	if len(n.Types) > 0 {
		if t.TypeNumber < 0 || int(t.TypeNumber) >= len(n.Types) || n.Types[t.TypeNumber].Bytes == 0 {
			return &MisfitError{"type", int64(t.TypeNumber)}
		}
		t.Type = n.Types[t.TypeNumber].Name
	}
	return nil
}

func nameOf(list []string, number int32) string {
	if number < 0 || int(number) >= len(list) {
		return ""
	}
	return list[number]
}

// plausible returns a MisfitError if the tensor's shape is impossible.
func (t *RawTensor) plausible(n *Names) error {
	for i, ne := range t.NE {
		if ne <= 0 || ne > maxElements {
			return &MisfitError{[...]string{"ne[0]", "ne[1]", "ne[2]", "ne[3]"}[i], ne}
		}
	}
	if len(n.Types) == 0 {
		return nil
	}
	// A view may permute dimensions, so any stride may be that of one element, or of one block.
	// Dimensions with one element may have any stride.
	size := uint64(n.Types[t.TypeNumber].Bytes) //nolint:gosec // positive
	free := false
	for i := range dimensions {
		if t.NB[i] == size {
			return nil
		}
		free = free || t.NE[i] == 1
	}
	if free && t.NB[0]%size == 0 || t.View != 0 {
		return nil
	}
	return &MisfitError{"nb[0]", int64(t.NB[0])} //nolint:gosec // shown only
}
