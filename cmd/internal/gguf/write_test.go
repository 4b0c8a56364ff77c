package gguf

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
)

func written(t *testing.T, s Shape) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestTheBytesStay pins what real runtimes load: recordings and figures of one machine are compared with those of
// another.
func TestTheBytesStay(t *testing.T) {
	floats := Shape{Name: "floats", Layers: 1, Width: 64, Heads: 2, KVHeads: 1, Hidden: 96, Vocab: 300, Context: 64, Weights: F32}
	blocks := Tiny
	blocks.Weights = Q4_0
	for _, c := range []struct {
		shape Shape
		want  string
	}{{Tiny, "b7b2d6669a865a18"}, {MoE, "6e200520ef134d49"}, {floats, "3068c75bab0e7a07"}, {blocks, "4734f708b547f6dd"}} {
		sum := sha256.Sum256(written(t, c.shape))
		if got := hex.EncodeToString(sum[:8]); got != c.want {
			t.Errorf("%s of %s has the sum %s, want %s", c.shape.Name, c.shape.Weights, got, c.want)
		}
	}
}

// full is a writer with room for some bytes.
type full int

func (f *full) Write(b []byte) (int, error) {
	if *f -= full(len(b)); *f < 0 {
		return 0, errFull
	}
	return len(b), nil
}

var errFull = errors.New("no space left")

func TestAFullDiskIsSaid(t *testing.T) {
	for _, room := range []full{0, 1 << 20, 3 << 20} {
		if err := Write(&room, Tiny); !errors.Is(err, errFull) {
			t.Errorf("%v, want it to say that there is no space", err)
		}
	}
}

func ExampleShape_Parameters() {
	fmt.Printf("%.1f billion\n", float64(Big.Parameters())/1e9)
	// Output: 1.1 billion
}
