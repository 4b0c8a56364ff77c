package binary

import (
	"encoding/binary"
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Words of A64 code, as GNU as makes them.
const (
	armSTPLink   = 0xa9bd7bfd // stp x29, x30, [sp, #-48]!
	armMovArg    = 0xaa0103f3 // mov x19, x1
	armMovInto   = 0xaa0103e0 // mov x0, x1
	armBL        = 0x94000000 // bl .
	armCBZ       = 0xb4000040 // cbz x0, .+8
	armRET       = 0xd65f03c0 // ret
	armRETAA     = 0xd65f0bff // retaa
	armPACIASP   = 0xd503233f // paciasp
	armBTI       = 0xd503245f // bti c
	armLDR       = 0xb9407008 // ldr w8, [x0, #112]
	armAND       = 0x12003d08 // and w8, w8, #0xffff
	armSUBS      = 0x7100050a // subs w10, w8, #1
	armBEQ       = 0x54000220 // b.eq .+68
	armADRP      = 0x90000008 // adrp x8, .
	armSUBSP     = 0xd107c3ff // sub sp, sp, #0x1f0
	armLDADD     = 0xb8e9016b // ldaddal w9, w11, [x11]
	armSTRD      = 0xfd00bbea // str d10, [sp, #368]
	armLDPArgs   = 0xa9400400 // ldp x0, x1, [x0]
	armBackFour  = 0x54ffffe1 // b.ne .-4
	armSTPVector = 0x6d1823e9 // stp d9, d8, [sp, #384]
)

func armCode(t *testing.T, words ...uint32) (*object, symbol) {
	t.Helper()
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return codeAt(t, "arm64", hex.EncodeToString(b))
}

func TestArmSitesKeepWhatTheProbeNeeds(t *testing.T) {
	for name, c := range map[string]struct {
		code   []uint32
		need   need
		offset uint64
		cheap  bool
	}{
		"a call while arguments are intact":      {[]uint32{armSTPLink, armMovArg, armBL, armRET}, need{arguments: 2}, 8, true},
		"an argument is overwritten first":       {[]uint32{armSTPLink, armMovInto, armBL, armRET}, need{arguments: 2}, 0, false},
		"a pair is loaded over the arguments":    {[]uint32{armLDPArgs, armCBZ, armRET}, need{arguments: 2}, 0, false},
		"a jump at the entry":                    {[]uint32{armCBZ, armRET, armRET}, need{arguments: 2}, 0, true},
		"a barrier of the real one":              {[]uint32{armLDR, armAND, armSUBS, armBEQ, armRET}, need{}, 12, true},
		"a barrier's return":                     {[]uint32{armLDR, armAND, armSUBS, armBEQ, armRET}, need{ret: true}, 12, true},
		"a return probe after the link is saved": {[]uint32{armSTPLink, armMovArg, armBL, armRET}, need{ret: true}, 0, false},
		"a return probe after it is signed":      {[]uint32{armPACIASP, armCBZ, armRET}, need{ret: true}, 0, false},
		"a return probe after a landing mark":    {[]uint32{armBTI, armCBZ, armRET}, need{ret: true}, 4, true},
		"vector registers are saved":             {[]uint32{armSUBSP, armSTRD, armSTPVector, armCBZ, armRET, armRET}, need{arguments: 3}, 12, true},
		"an address is made":                     {[]uint32{armBTI, armADRP, armRET}, need{arguments: 2}, 4, true},
		"an atomic operation":                    {[]uint32{armLDADD, armCBZ, armRET}, need{}, 0, false},
		"a loop comes back":                      {[]uint32{armLDR, armAND, armBackFour, armRET}, need{}, 0, false},
		"a return within the walk":               {[]uint32{armLDR, armRETAA}, need{}, 0, false},
		"a batch by its address is overwritten":  {[]uint32{0xaa0003e1, armCBZ, armRET}, need{stack: true}, 0, false}, // mov x1, x0
		"nothing at all":                         {nil, need{}, 0, false},
	} {
		o, s := armCode(t, c.code...)
		got := sites{o, arm{}}.spot(s, c.need)
		if got.offset != c.offset || got.cheap != c.cheap {
			t.Errorf("%s: +%d %q cheap=%v, want +%d cheap=%v", name, got.offset, got.instruction, got.cheap, c.offset, c.cheap)
		}
	}
}

func TestArmEndsOfCalls(t *testing.T) {
	o, s := armCode(t, armSTPLink, armBL, 0x2a0003f3, 0x7100081f, 0x54000043, armRET, armRET) // mov w19, w0; cmp w0, #2; b.cc .+8
	if got, ok := (sites{o, arm{}}).after(s); !ok || got.offset != 16 || !got.cheap {
		t.Errorf("+%d %q cheap=%v %v", got.offset, got.instruction, got.cheap, ok)
	}
	o, s = armCode(t, armCBZ, armRET, armBL, armRET, 0x14000400) // b .+4096
	if got, ok := (sites{o, arm{}}).after(s); ok {
		t.Errorf("a call that is not always made: +%d", got.offset)
	}
	at, tails, ok := sites{o, arm{}}.returns(s)
	if !ok || len(at) != 2 || at[0].offset != 4 || at[1].offset != 12 || len(tails) != 1 || tails[0] != s.address+16+0x1000 {
		t.Errorf("%+v %x %v", at, tails, ok)
	}
	o, s = armCode(t, armCBZ, armRET, 0xd61f0200) // br x16
	if _, _, ok := (sites{o, arm{}}).returns(s); ok {
		t.Error("a jump to a computed address was taken for no end")
	}
	o, s = armCode(t, armCBZ, armRETAA)
	if _, _, ok := (sites{o, arm{}}).returns(s); ok {
		t.Error("an authenticated return was taken, which the kernel refuses")
	}
}

// Accessors as in the real libggml-base.so for arm64.
func TestArmAccessorsAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		code    []uint32
		want    []access
		returns []value
	}{
		"ggml_get_name":  {[]uint32{0x91040000, armRET}, nil, []value{{kind: number, c: 256, a: 1}}},
		"ggml_get_data":  {[]uint32{0xf9407c00, armRET}, []access{{offset: 248, size: 8}}, []value{{kind: loaded, c: 248, a: 1, size: 8}}},
		"ggml_nelements": {[]uint32{0xa9412408, 0xa9422809, armRET}, []access{{offset: 16, size: 8}, {offset: 24, size: 8}, {offset: 32, size: 8}, {offset: 40, size: 8}}, nil},
		"ggml_set_input": {[]uint32{0xb9409408, 0x32000108, 0xb9009408, armRET}, []access{{offset: 148, size: 4}, {offset: 148, size: 4, write: true}}, nil},
		"ggml_get_unary_op": {
			[]uint32{0xb9405008, 0x71016d1f, 0x54000061, 0xb9405400, armRET, 0x00000000},
			[]access{{offset: 80, size: 4, compared: true, immediate: 91}, {offset: 84, size: 4}},
			[]value{{kind: loaded, c: 84, a: 1, size: 4}},
		},
		"ggml_op_name":         {[]uint32{0x90000008, 0x9121e108, 0xf8605900, armRET}, nil, []value{{kind: loaded, c: 0x1878, a: 8, size: 8}}},
		"ggml_type_size":       {[]uint32{0x52800708, 0x90000009, 0x913ec129, 0x9ba82408, 0xf9400d00, armRET}, nil, []value{{kind: loaded, c: 0x1fb0 + 24, a: 56, size: 8}}},
		"ggml_tensor_overhead": {[]uint32{0x52802e00, armRET}, nil, []value{{kind: number, c: 368}}},
		"through the stack":    {[]uint32{0xd10043ff, 0xf90007e0, 0xf94007e8, 0xf9407d00, 0x910043ff, armRET}, []access{{offset: 248, size: 8}}, []value{{kind: loaded, c: 248, a: 1, size: 8}}},
	} {
		o, _ := armCode(t, c.code...)
		got := o.follow("f")
		if d := cmp.Diff(c.want, got.accesses, cmp.AllowUnexported(access{})); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if d := cmp.Diff(c.returns, got.returns, cmp.AllowUnexported(value{})); c.returns != nil && d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func FuzzArm(f *testing.F) {
	f.Add([]byte{0xfd, 0x7b, 0xbd, 0xa9, 0xc0, 0x03, 0x5f, 0xd6}, uint8(2), true)
	f.Fuzz(func(t *testing.T, code []byte, arguments uint8, ret bool) {
		o, s := codeAt(t, "arm64", hex.EncodeToString(code))
		got := sites{o, arm{}}.spot(s, need{arguments: int(arguments % 8), ret: ret})
		if got.offset%armBytes != 0 || got.offset > 0 && got.offset >= uint64(len(code)) {
			t.Errorf("a site at +%d of %d bytes", got.offset, len(code))
		}
		_, _ = sites{o, arm{}}.after(s)
		_, _, _ = sites{o, arm{}}.returns(s)
		_ = o.follow("f")
	})
}
