package tui

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

func TestEvidenceShowsEverything(t *testing.T) {
	s := change(t, "waiting", func(s *loop.Snapshot) {
		s.Facts.Conflicts = []string{"-m 8 was given, the command line says 16"}
	})
	got := words(drawn(evidence, s, plainLook(), 110, 400))
	for i := range s.Live.Findings {
		f := &s.Live.Findings[i]
		if !strings.Contains(got, f.Title+" (") {
			t.Errorf("rule %s is missing", f.ID)
		}
		for _, e := range f.Evidence {
			if !strings.Contains(got, e.Text) {
				t.Errorf("%s: %q is missing", f.ID, e.Text)
			}
		}
	}
	says(t, got, []string{
		"▲ conflict: -m 8 was given", "quantization – no quantization in config.json", "(measured)", "listed, not recommended: prefill takes 2 %",
		"DRAM activity: GPM needs Hopper or newer → dram_util is absent", "· the server runs on this machine",
	}, nil)
}

func TestEvidenceFilter(t *testing.T) {
	s := snapshotNamed(t, "waiting")
	for _, c := range []struct {
		filter    string
		says, not []string
	}{
		{"OOM", []string{`match "OOM"`, "OOM risk"}, []string{"Concurrency saturation (", "block_size", "Notes", "Facts"}},
		{"block", []string{"block_size", "num_gpu_blocks", "kv_capacity"}, []string{"Concurrency saturation (", "max_model_len"}},
		{"is read again at every", []string{"1 of", "Notes"}, []string{"Rules"}}, // across the end of a line
		{"no such thing", []string{`0 of`, "esc clears it"}, []string{"Rules", "Facts"}},
	} {
		t.Run(c.filter, func(t *testing.T) {
			u := &frame.Settings{Glyphs: cell.Unicode(), Filter: c.filter}
			got := drawn(evidence, s, u, 60, 300)
			for _, want := range c.says {
				if !strings.Contains(words(got), want) {
					t.Errorf("%q is missing in\n%s", want, got)
				}
			}
			for _, not := range c.not {
				if strings.Contains(words(got), not) {
					t.Errorf("%q is there in\n%s", not, got)
				}
			}
		})
	}
}
