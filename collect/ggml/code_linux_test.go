//go:build amd64 || arm64

package ggml

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/cilium/ebpf/asm"
)

// An atomic instruction encodes its operation in the constant
// (Documentation/bpf/standardization/instruction-set.rst).
func TestAtomicInstructions(t *testing.T) {
	for op, want := range map[asm.AtomicOp]uint32{asm.AddAtomic: 0, asm.FetchAdd: 1, asm.Xchg: 0xe1, asm.CmpXchg: 0xf1} {
		var b bytes.Buffer
		if err := (asm.Instructions{atomically(op, asm.R1, asm.R2, asm.DWord, 16)}).Marshal(&b, binary.LittleEndian); err != nil {
			t.Fatal(err)
		}
		if got := b.Bytes(); got[0] != 0xdb || binary.LittleEndian.Uint16(got[2:]) != 16 || binary.LittleEndian.Uint32(got[4:]) != want {
			t.Errorf("%v: % x, want the operation %#x", op, got, want)
		}
	}
}
