package ggml

import (
	"compress/gzip"
	"encoding/gob"
	"os"
	"path/filepath"
	"testing"

	layouts "github.com/rooftop-dev/rooftop/collect/ggml/binary"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// fixture is the content of the ring buffer for a real runtime, and the parts of its memory
// that were read: node-llama-cpp 3.22.1 with .ci/install-ggml's mixture model, one thread, a
// prompt and two tokens at level tensor. `go test -tags e2e -run E2EFixture -update` records it
// again.
type fixture struct {
	Layout  layouts.Layout
	Names   layouts.Names
	Places  []uint32 // refs by place
	Records [][]byte
	Memory  map[uint64][]byte
}

const fixturePath = "testdata/moe.gob.gz"

func readFixture(tb testing.TB) *fixture {
	tb.Helper()
	f, err := os.Open(filepath.FromSlash(fixturePath))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	var x fixture
	if err := gob.NewDecoder(z).Decode(&x); err != nil {
		tb.Fatal(err)
	}
	return &x
}

// decoder returns a decoder for the fixture's records.
func (x *fixture) decoder() *Decoder {
	places := make([]watched, len(x.Places))
	for i, ref := range x.Places {
		places[i].ref = ref
	}
	d := newDecoder(x.Layout, x.Names, places)
	d.memory = func(_ int32, addr uint64, to []byte) error {
		raw, ok := x.Memory[addr]
		if !ok || len(raw) < len(to) {
			return errNoMemory
		}
		copy(to, raw)
		return nil
	}
	d.backend = func(int32, uint64) string { return "CPU" }
	return d
}

// events decodes all records.
func (x *fixture) events() (*Decoder, []optrace.Event) {
	d := x.decoder()
	for _, r := range x.Records {
		d.Record(r)
	}
	return d, d.out.takeUntil(1 << 62)
}
