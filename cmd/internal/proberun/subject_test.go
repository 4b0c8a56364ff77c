package proberun

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/facts"
)

// TestGPUsOfAServerWithoutStatistics checks that its GPUs are searched for, although its launch
// command is that of a vLLM.
func TestGPUsOfAServerWithoutStatistics(t *testing.T) {
	s := &subject{o: &Options{}, engine: "vLLM", Server: &attach.Server{}}
	if err := s.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if s.GPUs == nil && s.Header.GPUWhy == "" {
		t.Error("no GPU, and no word why")
	}
}

// TestConflictsAreNotes checks that flags which contradict detected facts are reported.
func TestConflictsAreNotes(t *testing.T) {
	s := &subject{Server: &attach.Server{}}
	s.Header.Notes = []string{"found by its port"}
	s.facts = facts.Resolve(facts.Inputs{
		Flags: facts.Given{GPU: "L4"}, Catalog: catalog.Default(), Devices: []engine.GPU{{Name: "NVIDIA H100 80GB HBM3"}},
	})
	c := capture.Capture{Period: time.Second}
	s.complete(&c)
	if len(c.Notes) != 2 || !strings.Contains(c.Notes[1], "contradicts the device's own name") {
		t.Errorf("notes %q", c.Notes)
	}
}

func TestRequestWatch(t *testing.T) {
	r := newRequestWatch(&cli.Progress{}, 3)
	r.chunk(0)
	r.chunk(0)
	r.done(nil)
	if got := r.text(1600 * time.Millisecond); got != "2 s  1 of 3 requests  2 chunks" {
		t.Errorf("the line is %q", got)
	}
	r.start()() // on no terminal nothing is shown, and nothing waits
}
