package document_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// A run that is written and read back is unchanged.
func TestReadRun(t *testing.T) {
	s := tuned()
	r, err := document.ReadRun([]byte(written(t, document.WriteRun, s)))
	must(t, err)
	if r.Model != s.Target.Model || r.Server != s.Target.URL || !r.Started.Equal(s.Started) || r.Exit != s.Finished.ExitCode || r.Restarts != s.Finished.Restarts || len(r.Changes) != len(s.Iterations) {
		t.Errorf("read back as %+v", r)
	}
	kept := 0
	for i := range s.Iterations {
		if end := s.Iterations[i].End; end == loop.IterationKept || end == loop.IterationContinued {
			kept++
		}
	}
	if r.Kept() != kept || kept == 0 {
		t.Errorf("%d kept, want %d", r.Kept(), kept)
	}
	if got, want := r.Gain, (tuning.Run{Snapshot: s}).Gain(); got.OK != want.OK || got.V != want.V {
		t.Errorf("gain %v, want %v", got, want)
	}
}

func TestReadRunRefusesWhatIsNone(t *testing.T) {
	for _, text := range []string{"", "[]", "{}", `{"schema": "rooftop.diagnosis/v1"}`, `{"schema": "rooftop.run/v1"`} {
		if _, err := document.ReadRun([]byte(text)); err == nil {
			t.Errorf("%q was taken for a run", text)
		}
	}
}

// A server's texts cannot break any format of a past run.
func TestPastRunIsHarmless(t *testing.T) {
	r := &tuning.PastRun{
		Number: 1, Name: "a", Journal: true, Started: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Model: "m\x1b[31m<script>alert(1)</script>", Server: "http://h\x07:1",
		Outcome: tuning.PastCutOff, Story: []string{"a\x1b]0;t\x07 | b <img src=x>"}, Best: "vllm serve ```\n```",
		Changes: []tuning.PastChange{{N: 1, Changes: []engine.Change{{Flag: "--a|b", To: "<b>"}}, Gain: stat.Some(0.1)}},
	}
	markdown, html := written(t, render.Markdown, tuning.PastReport(r)), written(t, render.HTML, tuning.PastReport(r))
	for _, out := range []string{written(t, document.WritePastRun, r), markdown, html} {
		if strings.ContainsAny(out, "\x1b\x07") {
			t.Errorf("%q", out)
		}
	}
	if strings.Contains(markdown+html, "<script>") || strings.Contains(html, "<img") {
		t.Errorf("%s\n%s", markdown, html)
	}
	recovered := &tuning.Recovered{Server: "a\x1b", Found: []string{"b\x07"}, Steps: []string{"c"}, Why: "d\x1b"}
	for _, p := range []*page.Page{tuning.History([]tuning.PastRun{*r}), recovered.Page()} {
		if text := drawn(t, p, render.Options{}); strings.ContainsAny(text, "\x1b\x07") {
			t.Errorf("%q", text)
		}
	}
}

// A server's runs are listed under one heading, regardless of the spelling of its address, and each on one line of 80 cells.
func TestHistoryHasAServerOnce(t *testing.T) {
	gained := tuning.PastRun{Number: 1, Server: "http://127.0.0.1:8000/metrics", Model: "org/Tiny-1B", Outcome: tuning.PastEnded, Gain: stat.Some(3.084), Low: stat.Some(2.9), High: stat.Some(3.2), Started: time.Unix(1e9, 0),
		Restarts: 12, Changes: make([]tuning.PastChange, 12), Made: 10, Within: 10}
	other := tuning.PastRun{Number: 2, Server: "http://gpu-7:8000", Model: "org/Big-70B", Outcome: tuning.PastEnded}
	untold := tuning.PastRun{Number: 3, Server: "http://localhost:8000/", Outcome: tuning.PastCutOff}
	text := drawn(t, tuning.History([]tuning.PastRun{gained, other, untold}), render.Options{Width: 80})
	lines := strings.Split(strings.ReplaceAll(strings.TrimRight(text, "\n"), figure.NBSP, " "), "\n")
	if len(lines) != 8 {
		t.Fatalf("%d lines, want two servers, each with a head and its runs:\n%s", len(lines), text)
	}
	for i, begins := range map[int]string{0: "Tiny-1B at localhost:8000", 2: "    1", 3: "    3", 5: "Big-70B at gpu-7:8000", 7: "    2"} {
		if !strings.HasPrefix(lines[i], begins) {
			t.Errorf("line %d is %q, want %q", i, lines[i], begins)
		}
	}
	if !strings.Contains(lines[2], "+308 % +290 to +320 %") {
		t.Errorf("%q, want the gain with its interval", lines[2])
	}
}
