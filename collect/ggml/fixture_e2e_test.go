//go:build e2e && linux && (amd64 || arm64)

package ggml

import (
	"bytes"
	"compress/gzip"
	"encoding/gob"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

var update = flag.Bool("update", false, "record the fixture again")

// The decoder's fixture matches what a real runtime does today: the same calls, graphs and
// operators, in the same order. With -update it is recorded again.
func TestE2EFixture(t *testing.T) {
	run := startReal(t, "npm-new", "moe.gguf", 1)
	s := run.attach(t, optrace.LevelTensor)
	x := &fixture{Layout: s.runtime.Layout, Names: s.runtime.Names, Memory: map[uint64][]byte{}}
	for _, p := range s.decoder.places {
		x.Places = append(x.Places, p.ref)
	}
	s.decoder.memory = func(pid int32, addr uint64, to []byte) error {
		err := targetMemory{s.runtime.PID, &s.gaps}.read(pid, addr, to)
		if err == nil {
			x.Memory[addr] = bytes.Clone(to)
		}
		return err
	}
	run.say(t, "run 12 3")
	for range 10 {
		if _, err := s.ring.drain(func(r []byte) {
			x.Records = append(x.Records, bytes.Clone(r))
			s.decoder.Record(r)
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(minPause)
	}
	if *update {
		write(t, x)
	}
	if diff := cmp.Diff(steps(readFixture(t)), steps(x)); diff != "" {
		t.Errorf("the fixture is not what the runtime gives today: %s", diff)
	}
}

// steps returns the calls, graphs and operators of a fixture.
func steps(x *fixture) []string {
	d, events := x.events()
	var all []string
	for _, e := range of(events, optrace.CallBegin, optrace.GraphBegin, optrace.OpBegin, optrace.FusedBegin) {
		line := fmt.Sprint(e.Kind, " ", e.N)
		if e.Kind == optrace.OpBegin || e.Kind == optrace.FusedBegin {
			line += " " + text(&d.tables.Tables, e)
		}
		all = append(all, line)
	}
	return all
}

// write stores the fixture.
func write(t *testing.T, x *fixture) {
	t.Helper()
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err := gob.NewEncoder(z).Encode(x); err != nil {
		t.Fatal(err)
	}
	z.Close()
	t.Logf("%d records, %d pieces of memory, %d bytes", len(x.Records), len(x.Memory), b.Len())
	if b.Len() > 200_000 {
		t.Fatalf("the fixture has %d bytes", b.Len())
	}
	if err := os.WriteFile(fixturePath, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
