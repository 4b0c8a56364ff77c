package tui

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

func TestEvidenceShowsEverything(t *testing.T) {
	s := change(t, "waiting", func(s *engine.Snapshot) {
		s.Facts.Conflicts = []string{"-m 8 was given, the command line says 16"}
	})
	got := words(drawn(drawEvidence, s, unicodeLook(), 110, 400))
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
	for _, want := range []string{
		"▲ fired Seat saturation", "→ recommended", "fired in 10 of 10 windows, confidence 0.90 × impact 4 = 3.60: all 16 seats taken",
		"· seen Prefill interference", "· suppressed KV cache pressure: admission backlog", "● not fired Under-batching", "– not judged Power or temperature limit",
		"running_mean 15.9 req ≥ 15.5 req", "(measured)", "listed, not recommended: prefill takes 2 %",
		"max_num_seqs 16 seats command line", "gpu_memory_utilization 90 % command line", "parameters 8.03 B catalog (est)", "quantization – no quantization in config.json",
		"kv_capacity 417,000 tok derived blocks x block size", "not known: pipeline_parallel_size", "▲ conflict -m 8 was given",
		"DRAM activity: GPM needs Hopper or newer → dram_util is absent", "· the server runs on this machine",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestEvidenceFilter(t *testing.T) {
	s := snapshotNamed(t, "waiting")
	for _, c := range []struct {
		filter    string
		says, not []string
	}{
		{"OOM", []string{`match "OOM"`, "OOM risk"}, []string{"Seat saturation (", "block_size", "Notes", "Facts"}},
		{"block", []string{"block_size", "num_gpu_blocks", "kv_capacity"}, []string{"Seat saturation (", "max_model_len"}},
		{"is read anew at every", []string{"1 of", "Notes"}, []string{"Rules"}}, // across the end of a line
		{"no such thing", []string{`0 of`, "esc clears the filter"}, []string{"Rules", "Facts"}},
	} {
		t.Run(c.filter, func(t *testing.T) {
			u := &look{glyphs: cell.Unicode(), filter: c.filter}
			got := drawn(drawEvidence, s, u, 60, 300)
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

// TestScrollingShowsTheRest: a view that is longer than its pane shows the same
// lines from any line on.
func TestScrollingShowsTheRest(t *testing.T) {
	s := snapshotNamed(t, "long")
	for name, v := range map[string]struct {
		draw drawing
		id   viewID
	}{"evidence": {drawEvidence, viewEvidence}, "machine": {drawMachine, viewMachine}, "log": {drawLog, viewLog}} {
		u := unicodeLook()
		whole := strings.Split(drawn(v.draw, s, u, 80, 600), "\n")
		u.scroll[v.id] = 7
		part := strings.Split(drawn(v.draw, s, u, 80, 12), "\n")
		for y := range 12 {
			if part[y] != whole[7+y] {
				t.Errorf("%s: line %d is %q, want %q", name, y, part[y], whole[7+y])
			}
		}
		lines := v.draw(cell.NewCanvas(80, 12).Pane(), s, u)
		if strings.TrimSpace(whole[lines-1]) == "" || strings.TrimSpace(whole[lines]) != "" {
			t.Errorf("%s says it has %d lines", name, lines)
		}
	}
}

func TestEveryFactHasItsLine(t *testing.T) {
	f := fixtureFacts(16)
	f.Speculative = engine.Know(true, engine.FromEnv, "")
	f.APIServerCount = engine.Know(2, engine.FromFlag, "")
	got := map[string]factLine{}
	for _, l := range factLines(&f) {
		if _, twice := got[l.name]; twice {
			t.Errorf("%s twice", l.name)
		}
		got[l.name] = l
	}
	for _, want := range []factLine{
		{"speculative_decoding", "on", "environment", ""},
		{"api_server_count", "2", "rooftop's flag", ""},
		{"gpu_name", "NVIDIA A100-SXM4-80GB", "GPU", ""},
		{"cost", "$1.79/h", "catalog (est)", "on demand, 1 x $1.79, as of 2026-06"},
		{"max_num_batched_tokens", "2,048\u00a0tok", "default", "vLLM 0.11 on this GPU"},
		{"enforce_eager", "", "", ""},
	} {
		if got[want.name] != want {
			t.Errorf("got %+v, want %+v", got[want.name], want)
		}
	}
}
