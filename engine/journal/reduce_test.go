package journal

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// world is a server and a program that changes it, which writes a record before and after each act. The true state of the
// server is kept beside the records.
type world struct {
	rng     *rand.Rand
	now     time.Time
	records []Record
	truths  []truth // true state at each record
	truth   truth
	mode    string
	pid     int
	step    int
}

// truth is the true state, which only the test knows.
type truth struct {
	kept    string
	runs    *Running // nil if no server runs
	written bool     // a record names the running process
	over    bool
}

func (w *world) write(r Record) {
	w.now = w.now.Add(time.Second)
	r.Schema, r.Run, r.Seq, r.Time = Schema, "a", len(w.records)+1, w.now
	w.records = append(w.records, r)
	w.truths = append(w.truths, w.truth)
}

// acted records what has become true since the last record: a crash may come before the next one.
func (w *world) acted() { w.truths[len(w.truths)-1] = w.truth }

func (w *world) stop() {
	p := w.truth.runs
	w.truth.runs, w.truth.written = nil, false
	w.acted()
	if p != nil {
		w.write(Record{Kind: Stopped, Process: &p.Process})
	} else {
		w.write(Record{Kind: Stopped})
	}
}

func (w *world) start(launch string) {
	w.pid++
	p := &Running{Process: Process{PID: w.pid, Ticks: uint64(w.pid) * 100, Boot: "b"}, Launch: launch}
	w.truth.runs, w.truth.written = p, false
	w.acted()
	w.truth.written = true
	w.write(Record{Kind: Started, Process: &p.Process, Launch: launch})
}

// change makes one change with a random result.
func (w *world) change() {
	w.step++
	next := fmt.Sprintf("launch-%d", w.step)
	revert := w.truth.runs != nil && w.truth.runs.Launch != w.truth.kept
	if revert && w.rng.IntN(2) == 0 {
		w.write(Record{Kind: Intent, Revert: true, Launch: w.truth.kept, Iteration: w.step, Changes: []engine.Change{{Flag: "--a", From: "2", To: "1"}}})
		w.stop()
		w.start(w.truth.kept)
		w.write(Record{Kind: Ready, Launch: w.truth.kept})
		w.write(Record{Kind: Reverted})
		return
	}
	w.write(Record{Kind: Intent, Launch: next, Iteration: w.step, Changes: []engine.Change{{Flag: "--a", From: "1", To: "2"}}})
	w.stop()
	if w.rng.IntN(4) > 0 {
		w.start(next)
	}
	if w.rng.IntN(3) == 0 { // it does not start
		w.stop()
		w.start(w.truth.kept)
		w.write(Record{Kind: Ready, Launch: w.truth.kept})
		w.write(Record{Kind: Failed, Text: "out of memory"})
		return
	}
	if w.truth.runs == nil {
		w.start(next)
	}
	w.write(Record{Kind: Ready, Launch: next})
	w.write(Record{Kind: Verdict, Direction: "better"})
	if w.rng.IntN(2) == 0 {
		w.truth.kept = next
		w.write(Record{Kind: Kept, Launch: next})
	}
}

// live performs a whole run.
func (w *world) live() {
	w.truth.kept = "launch-0"
	if w.mode == "exec" {
		w.write(Record{Kind: Begin, Mode: "exec", Launch: "launch-0"})
		w.start("launch-0")
		w.write(Record{Kind: Ready})
	} else {
		w.pid++
		w.truth.runs = &Running{Process: Process{PID: w.pid, Ticks: 7, Boot: "b"}, Launch: "launch-0"}
		w.truth.written = true
		w.write(Record{Kind: Begin, Mode: "attach", Launch: "launch-0", Process: &w.truth.runs.Process})
	}
	for range w.rng.IntN(6) {
		w.change()
	}
	if w.truth.runs.Launch != w.truth.kept {
		w.write(Record{Kind: Intent, Revert: true, Launch: w.truth.kept})
		w.stop()
		w.start(w.truth.kept)
		w.write(Record{Kind: Ready})
		w.write(Record{Kind: Reverted})
	}
	w.truth.over = true
	w.write(Record{Kind: End})
}

// Every prefix of a journal gives a state that names what should run, and every process that may run instead.
func TestEveryPrefixNamesWhatToRestore(t *testing.T) {
	prefixes := 0
	for seed := range uint64(400) {
		mode := []string{"exec", "attach"}[seed%2]
		w := &world{rng: rand.New(rand.NewPCG(seed, 1)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), mode: mode}
		w.live()
		for n := 1; n <= len(w.records); n++ {
			prefixes++
			s, want := Reduce(w.records[:n]), w.truths[n-1]
			where := fmt.Sprintf("seed %d, after record %d (%s)", seed, n, w.records[n-1].Kind)
			if s.Open == want.over {
				t.Fatalf("%s: open %v, want %v", where, s.Open, !want.over)
			}
			if s.Kept.Launch != want.kept {
				t.Fatalf("%s: to restore %q, want %q", where, s.Kept.Launch, want.kept)
			}
			if !slices.Contains(s.Launches, want.kept) {
				t.Fatalf("%s: %q is not among the launches of the run", where, want.kept)
			}
			checkRunning(t, where, &s, want)
		}
	}
	if prefixes < 5000 {
		t.Errorf("only %d prefixes were looked at", prefixes)
	}
}

func checkRunning(t *testing.T, where string, s *State, want truth) {
	t.Helper()
	switch {
	case want.runs == nil:
		if s.Settled() && s.Open && s.Mode != "exec" {
			t.Fatalf("%s: settled, and no server runs", where)
		}
	case want.written:
		i := slices.IndexFunc(s.Processes, func(p Running) bool { return p.Process == want.runs.Process })
		if i < 0 || s.Processes[i].Launch != want.runs.Launch {
			t.Fatalf("%s: runs %+v, which is not among %+v", where, *want.runs, s.Processes)
		}
		if s.Settled() && s.Open && want.runs.Launch != want.kept {
			t.Fatalf("%s: settled, and %s runs instead of %s", where, want.runs.Launch, want.kept)
		}
	default:
		// Started, and killed before the record of it: possible only in a stage without a known server.
		if s.Stage == StageTrial || s.Stage == StageStable && s.Mode == "attach" {
			t.Fatalf("%s: stage %s, and a process runs that no record names", where, s.Stage)
		}
		if l := want.runs.Launch; l != s.Next.Launch && l != s.Kept.Launch {
			t.Fatalf("%s: %s runs, which is neither next (%s) nor kept (%s)", where, l, s.Next.Launch, s.Kept.Launch)
		}
	}
}

func TestStages(t *testing.T) {
	first := Process{PID: 1, Ticks: 1, Boot: "b"}
	second := Process{PID: 2, Ticks: 2, Boot: "b"}
	begin := Record{Kind: Begin, Mode: "attach", Launch: "kept", Process: &first}
	intent := Record{Kind: Intent, Launch: "next", Changes: []engine.Change{{Flag: "--a", From: "1", To: "2"}}}
	hookBegin := Record{Kind: Begin, Mode: "hook"}
	hookIntent := Record{Kind: Intent, Changes: []engine.Change{{Flag: "--a", From: "1", To: "2"}}}
	hookBack := Record{Kind: Intent, Revert: true, Changes: []engine.Change{{Flag: "--a", From: "2", To: "1"}}}
	for _, c := range []struct {
		name    string
		records []Record
		stage   Stage
		settled bool
		kept    string
	}{
		{"nothing", nil, StageStable, true, ""},
		{"begun", []Record{begin}, StageStable, true, "kept"},
		{"intended", []Record{begin, intent}, StageStopping, false, "kept"},
		{"stopped", []Record{begin, intent, {Kind: Stopped, Process: &first}}, StageDown, false, "kept"},
		{"started", []Record{begin, intent, {Kind: Stopped}, {Kind: Started, Process: &second}}, StageStarting, false, "kept"},
		{"ready", []Record{begin, intent, {Kind: Stopped}, {Kind: Started, Process: &second}, {Kind: Ready}}, StageTrial, false, "kept"},
		{"kept", []Record{begin, intent, {Kind: Stopped}, {Kind: Started, Process: &second}, {Kind: Ready}, {Kind: Kept}}, StageStable, true, "next"},
		{"kept by name", []Record{begin, intent, {Kind: Ready}, {Kind: Kept, Launch: "next"}, {Kind: Kept}}, StageStable, true, "next"},
		{"failed and not reverted", []Record{begin, intent, {Kind: Stopped}, {Kind: Failed}}, StageFailed, false, "kept"},
		{"failed, then reverted", []Record{begin, intent, {Kind: Stopped}, {Kind: Failed}, {Kind: Started, Process: &second, Launch: "kept"}, {Kind: Ready}}, StageStable, true, "kept"},
		{"failed, reverted by its own account", []Record{begin, intent, {Kind: Stopped}, {Kind: Failed}, {Kind: Reverted}}, StageStable, true, "kept"},
		{"hook ready", []Record{hookBegin, hookIntent, {Kind: Ready}}, StageTrial, false, ""},
		{"hook back", []Record{hookBegin, hookIntent, {Kind: Ready}, hookBack, {Kind: Ready}}, StageStable, true, ""},
		{"a kind of later days", []Record{begin, {Kind: "paused"}}, StageStable, true, "kept"},
		{"ended", []Record{begin, {Kind: End}}, StageStable, true, "kept"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i := range c.records {
				c.records[i].Run, c.records[i].Seq = "a", i+1
			}
			s := Reduce(c.records)
			if s.Stage != c.stage || s.Settled() != c.settled || s.Kept.Launch != c.kept {
				t.Errorf("stage %s settled %v kept %q, want %s %v %q", s.Stage, s.Settled(), s.Kept.Launch, c.stage, c.settled, c.kept)
			}
		})
	}
}
