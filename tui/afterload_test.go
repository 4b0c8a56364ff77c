package tui

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// endedLoad is a server whose load ended for as long as given: the latest windows still have a part of it.
func endedLoad(t *testing.T, ago time.Duration) *loop.Snapshot {
	s := *snapshotNamed(t, "waiting")
	s.Live = diagnosisAt(2, 0)
	s.Points = slices.Clone(s.Points)
	end := s.Points[len(s.Points)-1].T
	for i := range s.Points {
		if p := &s.Points[i]; p.T > end-ago {
			*p = loop.Point{T: p.T, Iteration: p.Iteration, Tokens: some(0), Running: some(0), Waiting: some(0), KV: some(0), GPU: some(0)}
		}
	}
	return &s
}

// After the load the views show the present, and of the past only the measurement that the advice
// comes from.
func TestAfterTheLoad(t *testing.T) {
	s := endedLoad(t, 16*time.Second)
	since, ok := lastLoad(s)
	if !ok {
		t.Fatal("the load has not ended")
	}
	got := words(drawn(now, s, plainLook(), 120, 27))
	for _, want := range []string{"no requests since " + figure.Clock(since), "Output 0 tok/s", "Running 0 of", "--max-num-seqs 16 → 40", "from the baseline of"} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
	for _, old := range []string{"Ceiling at", "Findings", "last 20 s"} {
		if strings.Contains(got, old) {
			t.Errorf("has %q:\n%s", old, got)
		}
	}
	var banner strings.Builder
	for _, line := range bannerOf(s, plainLook()) {
		banner.WriteString(line.Text)
	}
	if want := "the advice is for the previous load"; !strings.Contains(banner.String(), want) {
		t.Errorf("%q lacks %q", banner.String(), want)
	}
	dialog := ""
	m := &model{latest: s}
	s.Can[loop.CommandApply] = loop.Availability{OK: true}
	m.askApply()
	for _, line := range m.Settings.Ask.Lines {
		dialog += line.Text + "\n"
	}
	if want := "a change cannot be judged until there is load again"; !strings.Contains(dialog, want) {
		t.Errorf("%q lacks %q", dialog, want)
	}
}

// A light load has windows without requests.
func TestAShortPauseIsNoEnd(t *testing.T) {
	s := endedLoad(t, 4*time.Second)
	if noLoad(s) {
		t.Error("no load after a pause of 4 s")
	}
	s.Live.Windows.Active -= 2
	if got := words(drawn(now, s, plainLook(), 120, 27)); !strings.Contains(got, "last 20 s, under load") {
		t.Errorf("the means are not said to be of the windows with load:\n%s", got)
	}
}
