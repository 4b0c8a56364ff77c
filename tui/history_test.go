package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/verdict"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// At any width, all facts about each iteration can be scrolled to.
func TestHistoryTellsAllAtEveryWidth(t *testing.T) {
	s := snapshotNamed(t, "worse")
	want := []string{"worse", "load differs: prompts were 9 % longer after the change", "Noise: +2.1 %, −1.3 %", "within"}
	for i := range s.Iterations {
		it := &s.Iterations[i]
		want = append(want, tuning.IterationChange(it), tuning.Sentence(it.Text), tuning.Change(it.Delta.Throughput), tuning.ChangeNote(it))
		for _, r := range tuning.DeltaRows(it.Delta, nil) {
			want = append(want, strings.TrimSpace(r.Label+" "+r.Before+" "+r.After+" "+r.Unit))
		}
	}
	for w := 60; w <= 240; w += 3 {
		got := words(drawn(history, s, plainLook(), w, 140))
		for _, part := range want {
			if !strings.Contains(got, words(part)) {
				t.Errorf("at %d columns lacks %q:\n%s", w, part, got)
			}
		}
	}
}

// TestHistoryAndNowShowTheSameFigures checks that both views show a change as it was judged, not as the whole
// measurement has it: 3,550 tok/s and a p99 of 139 ms.
func TestHistoryAndNowShowTheSameFigures(t *testing.T) {
	s := snapshotNamed(t, "better")
	for name, content := range map[string]contentOf{"now": now, "history": history} {
		got := strings.ReplaceAll(words(drawn(content, s, plainLook(), 200, 60)), "→ ", "")
		for _, want := range []string{"1,230 2,530", "9.66 s 676 ms", "$0.41 $0.20"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s lacks %q:\n%s", name, want, got)
			}
		}
	}
}

func TestHistoryScrollsTheListAlone(t *testing.T) {
	s, u := snapshotNamed(t, "worse"), plainLook()
	const h = 20
	top := strings.Split(drawn(history, s, u, 80, h), "\n")
	bottom := strings.Split(drawnFrom(history, s, u, 80, h, history(s, u, 80).Lines(h)-h), "\n")
	if !strings.Contains(top[1], "--max-num-seqs 16 → 4") {
		t.Errorf("the newest is not first: %q", top[1])
	}
	if last := h/2 - 1; !strings.Contains(bottom[last], "$/1M output") {
		t.Errorf("the end of the list is not to be reached: %q", bottom[last])
	}
	if diff := cmp.Diff(top[h/2:], bottom[h/2:]); diff != "" {
		t.Errorf("the charts moved (-top +bottom)\n%s", diff)
	}
}

// TestTimelineStretches covers a run with four changes: kept, no gain, reverted, the same settings
// again.
func TestTimelineStretches(t *testing.T) {
	at := func(seconds int) time.Duration { return time.Duration(seconds) * time.Second }
	mark := func(seconds int, kind loop.MarkKind) loop.Mark { return loop.Mark{T: at(seconds), Kind: kind} }
	s := &loop.Snapshot{
		Iterations: []loop.Iteration{
			{N: 1, At: at(20), End: loop.IterationKept}, {N: 2, At: at(60), End: loop.IterationNoGain},
			{N: 3, At: at(100), End: loop.IterationReverted}, {N: 4, At: at(160), End: loop.IterationNoise},
			{N: 5, At: at(200), Delta: &effect.Delta{Direction: verdict.Worse}},
		},
		Marks: []loop.Mark{
			mark(20, loop.MarkDown), mark(24, loop.MarkUp), mark(24, loop.MarkChange), mark(44, loop.MarkVerdict),
			mark(60, loop.MarkDown), mark(64, loop.MarkUp), mark(84, loop.MarkVerdict),
			mark(100, loop.MarkDown), mark(104, loop.MarkUp), mark(124, loop.MarkVerdict), mark(130, loop.MarkDown), mark(134, loop.MarkUp),
			mark(160, loop.MarkDown), mark(164, loop.MarkUp), mark(184, loop.MarkVerdict),
			mark(200, loop.MarkDown), mark(204, loop.MarkUp), mark(224, loop.MarkVerdict),
		},
	}
	line := &timeline{s: s}
	for _, c := range []struct {
		at    int
		word  string
		token cell.Token
	}{
		{10, "baseline", cell.Baseline}, {22, "down", cell.Trial}, {30, "1 on trial", cell.Trial}, {50, "1 kept", cell.Baseline},
		{70, "2 on trial", cell.Trial}, {90, "2 no gain", cell.Trial},
		{110, "3 on trial", cell.Trial}, {126, "3 reverted", cell.Trial}, {132, "down", cell.Trial}, {140, "reverted", cell.Baseline},
		{170, "4 noise", cell.Baseline}, {190, "4 noise", cell.Baseline},
		{210, "5 on trial", cell.Trial}, {230, "5 worse", cell.Trial},
	} {
		st := line.at(at(c.at))
		if got := line.words(st)[0]; got != c.word || st.token() != c.token {
			t.Errorf("at %d s: %q in token %d, want %q in %d", c.at, got, st.token(), c.word, c.token)
		}
	}
}

// An outage is a gap in every chart, as wide as its duration, even while it lasts.
func TestOutageIsAGap(t *testing.T) {
	s := snapshotNamed(t, "down")
	line := newTimeline(s, plainLook(), 200)
	c := cell.NewCanvas(200, 3)
	line.strip(c.Pane(), &timeMeasures()[0])
	foot := []rune(strings.Split(c.Plain(), "\n")[2])[timeLeft:]
	answered := map[time.Duration]bool{}
	for _, p := range s.Points {
		answered[p.T] = p.Tokens.OK
	}
	for i := range line.span.N {
		up := answered[line.span.Start(i+1)]
		if drawn := i < len(foot) && foot[i] == '█'; drawn != up {
			t.Errorf("window to %v: drawn %v, the server answered %v\n%s", line.span.Start(i+1), drawn, up, string(foot))
		}
	}
	if after := line.span.Start(line.span.N); after < s.Now-line.span.Step {
		t.Errorf("ends at %v, now is %v", after, s.Now)
	}
}

// A chart stays the same from one moment to the next, except for an added column.
func TestChartsDoNotWobble(t *testing.T) {
	full := snapshotNamed(t, "waiting")
	var before []rune
	var step time.Duration
	for n := 100; n < 140; n++ {
		s := *full
		s.Points, s.Now = full.Points[:n], full.Points[n-1].T+time.Second
		line := newTimeline(&s, plainLook(), 120)
		c := cell.NewCanvas(120, 1)
		line.strip(c.Pane(), &timeMeasures()[0])
		now := []rune(strings.Split(c.Plain(), "\n")[0])[timeLeft : timeLeft+line.span.N-1]
		if line.span.Step == step && string(now[:len(before)]) != string(before) {
			t.Fatalf("after %d windows\n%s\n%s", n, string(before), string(now))
		}
		before, step = now, line.span.Step
	}
}
