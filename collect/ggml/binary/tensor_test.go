package binary

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// currentLayout returns GGML's layout since 2024-11.
func currentLayout() Layout {
	l := knownLayouts[0].layout
	l.From = "version table"
	return l
}

var testNames = Names{
	Ops: []string{"NONE", "MUL_MAT", "UNARY", "GLU"}, Unary: []string{"ABS", "SILU"}, GLU: []string{"REGLU", "GEGLU", "SWIGLU"},
	Types: builtinTypes(),
}

// rawTensor returns the bytes of a tensor in memory.
func rawTensor(l *Layout, t *RawTensor) []byte {
	b := make([]byte, l.Bytes())
	put32 := func(at int, v int32) { binary.LittleEndian.PutUint32(b[at:], uint32(v)) }
	put64 := func(at int, v uint64) { binary.LittleEndian.PutUint64(b[at:], v) }
	put32(l.Type, t.TypeNumber)
	put32(l.Op, t.OpNumber)
	put32(l.Flags, t.Flags)
	for i := range t.NE {
		put64(l.NE+8*i, uint64(t.NE[i]))
		put64(l.NB+8*i, t.NB[i])
	}
	for i, p := range t.Params {
		put32(l.Params+4*i, p)
	}
	for i := range l.Slots {
		put64(l.Src+8*i, t.Sources[i])
	}
	put64(l.View, t.View)
	put64(l.Data, t.Data)
	copy(b[l.Name:], t.Name)
	return b
}

func sampleTensor() RawTensor {
	return RawTensor{
		Name: "ffn_up-3", Op: "MUL_MAT", OpNumber: 1, Type: "f32", NE: [4]int64{1024, 24, 1, 1}, NB: [4]uint64{4, 4096, 98304, 98304},
		Params: [16]int32{7, 0, -1}, Flags: 16, Sources: [maxSlots]uint64{0x1000, 0x2000}, Data: 0x7f0000001000,
	}
}

func TestATensorIsReadBack(t *testing.T) {
	for i := range knownLayouts {
		l := knownLayouts[i].layout
		want := sampleTensor()
		got, err := readTensor(rawTensor(&l, &want), &l, &testNames)
		if err != nil {
			t.Fatalf("layout since %s: %v", knownLayouts[i].since, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("layout since %s: %s", knownLayouts[i].since, d)
		}
	}
}

func TestTheLayoutNeedsTheBytesThatWereMeasured(t *testing.T) {
	l := currentLayout()
	if got := l.Bytes(); got != 320 {
		t.Errorf("%d bytes of a tensor are needed, want 320: the name ends there", got)
	}
}

func TestTheFunctionOfAnOperatorIsNamed(t *testing.T) {
	l := currentLayout()
	for _, c := range []struct {
		op   int32
		p0   int32
		want string
	}{{2, 1, "SILU"}, {3, 2, "SWIGLU"}, {1, 1, ""}, {2, 99, ""}, {3, -1, ""}} {
		raw := sampleTensor()
		raw.OpNumber, raw.Params[0] = c.op, c.p0
		got, err := readTensor(rawTensor(&l, &raw), &l, &testNames)
		if err != nil || got.Sub != c.want {
			t.Errorf("op %d with %d: %q, %v, want %q", c.op, c.p0, got.Sub, err, c.want)
		}
	}
}

func TestWhatCannotBeATensorIsRefused(t *testing.T) {
	l := currentLayout()
	for name, c := range map[string]struct {
		change func(*RawTensor)
		field  string
	}{
		"an operator beyond the table": {func(r *RawTensor) { r.OpNumber = 4 }, "op"},
		"a negative operator":          {func(r *RawTensor) { r.OpNumber = -1 }, "op"},
		"a type beyond the table":      {func(r *RawTensor) { r.TypeNumber = 1000 }, "type"},
		"a type that was removed":      {func(r *RawTensor) { r.TypeNumber = 4 }, "type"},
		"no elements":                  {func(r *RawTensor) { r.NE[2] = 0 }, "ne[2]"},
		"a pointer as a dimension":     {func(r *RawTensor) { r.NE[0] = 0x7f0000000000 }, "ne[0]"},
		"no stride of one element":     {func(r *RawTensor) { r.NE[2], r.NE[3], r.NB = 2, 2, [4]uint64{5, 7, 9, 11} }, "nb[0]"},
	} {
		raw := sampleTensor()
		c.change(&raw)
		_, err := readTensor(rawTensor(&l, &raw), &l, &testNames)
		var misfit *MisfitError
		if !errors.As(err, &misfit) || misfit.Field != c.field {
			t.Errorf("%s: %v, want a misfit of %s", name, err, c.field)
		}
	}
	raw := sampleTensor()
	b := rawTensor(&l, &raw)
	b[l.Name+2] = 7
	if _, err := readTensor(b, &l, &testNames); !errors.Is(err, errName) {
		t.Errorf("a name with a bell: %v", err)
	}
	for i := range nameBytes {
		b[l.Name+i] = 'x'
	}
	if _, err := readTensor(b, &l, &testNames); !errors.Is(err, errName) {
		t.Errorf("an unterminated name: %v", err)
	}
	if _, err := readTensor(b[:319], &l, &testNames); !errors.Is(err, errShort) {
		t.Errorf("319 bytes: %v", err)
	}
	empty := emptyLayout()
	if _, err := readTensor(b, &empty, &testNames); !errors.Is(err, errNoLayout) {
		t.Errorf("no layout: %v", err)
	}
}

// Tensors of attention have permuted dimensions, and views begin anywhere.
func TestPermutedTensorsAreBelieved(t *testing.T) {
	l := currentLayout()
	for name, change := range map[string]func(*RawTensor){
		"transposed": func(r *RawTensor) { r.NB[0], r.NB[1] = 4096, 4 },
		"one column": func(r *RawTensor) { r.NE = [4]int64{1, 24, 8, 1}; r.NB = [4]uint64{4096, 4096, 98304, 786432} },
		"a view": func(r *RawTensor) {
			r.View = 0x5000
			r.NE = [4]int64{64, 2, 2, 2}
			r.NB = [4]uint64{8, 512, 1024, 2048}
		},
		"not ASCII":   func(r *RawTensor) { r.Name = "Größe" },
		"without any": func(r *RawTensor) { r.Name = "" },
	} {
		raw := sampleTensor()
		change(&raw)
		if got, err := readTensor(rawTensor(&l, &raw), &l, &testNames); err != nil || got.Name != raw.Name {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDecodingTheSameNameAgainAllocatesNothing(t *testing.T) {
	l := currentLayout()
	raw := sampleTensor()
	b := rawTensor(&l, &raw)
	var got RawTensor
	if n := testing.AllocsPerRun(100, func() { _ = DecodeTensor(&got, b, &l, &testNames) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = readTensor(b, &l, &testNames) }); n > 1 {
		t.Errorf("%v allocations for a tensor read for the first time, want the name's", n)
	}
}

func FuzzReadTensor(f *testing.F) {
	l := currentLayout()
	raw := sampleTensor()
	f.Add(rawTensor(&l, &raw), 152, 256)
	f.Fuzz(func(t *testing.T, b []byte, src, name int) {
		l := currentLayout()
		l.Src, l.Name = src, name
		got, err := readTensor(b, &l, &testNames)
		if err == nil && (got.Op == "" || got.Type == "" || got.NE[0] <= 0) {
			t.Errorf("%+v was believed", got)
		}
	})
}

// readTensor decodes the first [Layout.Bytes] bytes of a ggml_tensor into a new RawTensor.
func readTensor(raw []byte, l *Layout, n *Names) (RawTensor, error) {
	var t RawTensor
	err := DecodeTensor(&t, raw, l, n)
	return t, err
}
