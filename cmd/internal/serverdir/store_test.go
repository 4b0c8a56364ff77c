package serverdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// server names a server that no other test and no other process has: the lock is of the machine.
func server(t *testing.T) Identity {
	return Identity{Host: fmt.Sprintf("%s-%d.example", strings.ToLower(t.Name()), os.Getpid()), Port: 8000, Model: "org/Tiny-1B", GPUs: []string{"GPU-b", "GPU-a"}}
}

func open(t *testing.T, root string, id Identity) *Store {
	t.Helper()
	s, err := OpenStore(root, id, "1.2.3")
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func write(t *testing.T, s *Store, list ...journal.Record) {
	t.Helper()
	for _, r := range list {
		must(t, s.Write(r))
	}
}

func TestRunIsWrittenDownAndTidied(t *testing.T) {
	root, id := t.TempDir(), server(t)
	s := open(t, root, id)
	launch := &launcher.Launch{Argv: []string{"vllm", "serve"}, Env: []string{"VLLM_API_KEY=secret"}, Files: []launcher.File{{Path: "/etc/c.yaml", Mode: 0o644, Data: []byte{0, 255, '\n'}, Time: time.Unix(1, 2).UTC()}}}
	name, err := s.Keep(launch)
	must(t, err)
	if again, err := s.Keep(launch); err != nil || again != name {
		t.Errorf("the same launch again: %q, %v, want %q", again, err, name)
	}
	read, err := ReadLaunch(s.dir, name)
	must(t, err)
	if d := cmp.Diff(launch, read); d != "" {
		t.Errorf("-kept +read:\n%s", d)
	}
	write(t, s, journal.Record{Kind: journal.Begin, Mode: "attach", Launch: name})
	onlyOwner(t, s.Dir())
	must(t, s.End(0, "nothing is left to recommend"))
	if _, err := os.Stat(filepath.Join(s.Dir(), name)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the exact launch of a settled run is still there: %v", err)
	}
	must(t, s.Close())
	records, err := Records(s.Dir())
	must(t, err)
	if len(records) != 2 || records[0].Version != "1.2.3" || records[1].Seq != 2 || records[1].Run != s.Run() || records[0].Time.IsZero() {
		t.Errorf("records: %+v", records)
	}
	for _, e := range names(t, s.Dir()) {
		if e != journalName && e != lockName && e != identityName {
			t.Errorf("left behind: %s", e)
		}
	}
	next := open(t, root, id)
	if next.Run() == s.Run() || next.State().Seq != 2 {
		t.Errorf("next run %q after record %d", next.Run(), next.State().Seq)
	}
}

// onlyOwner checks that nobody else reads what lies in a directory.
func onlyOwner(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	must(t, err)
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	must(t, err)
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

func TestCutOffRunIsNotRunOver(t *testing.T) {
	root, id := t.TempDir(), server(t)
	s := open(t, root, id)
	name, err := s.Keep(&launcher.Launch{Argv: []string{"a"}})
	must(t, err)
	write(t, s, journal.Record{Kind: journal.Begin, Launch: name}, journal.Record{Kind: journal.Intent, Changes: []engine.Change{{Flag: "--a", To: "1"}}})
	if err := s.End(0, ""); err == nil {
		t.Error("a run with a change under way was ended")
	}
	_ = s.Close()
	_, err = OpenStore(root, id, "")
	var cut *UnfinishedError
	if !errors.As(err, &cut) || !strings.Contains(err.Error(), "rooftop recover") || strings.Contains(err.Error(), "\n") {
		t.Fatalf("got %v", err)
	}
	if cut.State.Kept.Launch != name || cut.State.Stage != journal.StageStopping {
		t.Errorf("state %+v", cut.State)
	}
	// The refusal leaves the lock and the launch.
	again, err := OpenUnfinished(cut.Dir, "")
	must(t, err)
	defer again.Close()
	if _, err := ReadLaunch(again.dir, name); err != nil {
		t.Error(err)
	}
	if again.Run() != s.Run() {
		t.Errorf("goes on as run %q, want %q", again.Run(), s.Run())
	}
}

func TestTornRecordIsSetAside(t *testing.T) {
	root, id := t.TempDir(), server(t)
	s := open(t, root, id)
	write(t, s, journal.Record{Kind: journal.Begin}, journal.Record{Kind: journal.End})
	_ = s.Close()
	path := filepath.Join(s.Dir(), journalName)
	whole, err := os.ReadFile(path)
	must(t, err)
	const torn = `{"schema":"rooftop.journal/v1","seq":3,"ki`
	must(t, os.WriteFile(path, append(whole, torn...), 0o600))
	again := open(t, root, id)
	write(t, again, journal.Record{Kind: journal.Begin})
	data, err := os.ReadFile(path)
	must(t, err)
	if f := journal.Decode(data); len(f.Records) != 3 || f.Records[2].Seq != 3 || len(f.Torn)+len(f.Damaged) != 0 {
		t.Errorf("journal reads as %+v", f)
	}
	if aside, _ := os.ReadFile(filepath.Join(s.Dir(), tornName)); string(aside) != torn+"\n" {
		t.Errorf("set aside: %q", aside)
	}
}

func TestLargeJournalIsSetAsideBetweenRuns(t *testing.T) {
	root, id := t.TempDir(), server(t)
	log := 0.02
	for range 3 {
		s := open(t, root, id)
		write(t, s, journal.Record{Kind: journal.Begin}, journal.Record{Kind: journal.Spread, Log: &log})
		for s.size <= rotateAt {
			s.file.Write([]byte(strings.Repeat(" ", 1<<16) + "\n")) // no record; only its size counts
			s.size += 1<<16 + 1
		}
		must(t, s.End(0, ""))
		_ = s.Close()
	}
	s := open(t, root, id)
	if got := s.State().Seq; got != 9 {
		t.Errorf("the journal goes on after record %d, want 9", got)
	}
	p, err := s.Past()
	if err != nil || len(p.Repeats) != 1 {
		t.Errorf("of three runs, two in files that were replaced: %v, %v", p.Repeats, err)
	}
}

func TestTwoTunersNeverMeet(t *testing.T) {
	root, id := t.TempDir(), server(t)
	open(t, root, id)
	other := id
	other.Model, other.GPUs = "", nil // it knows less of the same server
	far := Identity{Host: "gpu-7", Port: id.Port, Addresses: []string{"192.0.2.7", id.Host}}
	for name, c := range map[string]struct {
		root string
		id   Identity
	}{
		"same directory":          {root, id},
		"another state directory": {t.TempDir(), id},
		"another identity":        {root, other},
		"another name":            {root, far},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := OpenStore(c.root, c.id, "")
			var held *HeldError
			if !errors.As(err, &held) {
				t.Fatalf("got %v, want that it is held", err)
			}
			if held.PID != os.Getpid() || time.Since(held.Since) > time.Minute {
				t.Errorf("held by %d since %v", held.PID, held.Since)
			}
		})
	}
	port := id
	port.Port++
	open(t, root, port)
}

// TestTwoTunersOfOneContainerNeverMeet: by two published ports of it.
func TestTwoTunersOfOneContainerNeverMeet(t *testing.T) {
	root, id := t.TempDir(), server(t)
	other, object := id, []string{"container " + id.Host}
	other.Port++
	first, second := open(t, root, id), open(t, root, other)
	must(t, first.Claim(object))
	var held *HeldError
	if err := second.Claim(object); !errors.As(err, &held) || held.PID != os.Getpid() {
		t.Errorf("got %v, want that it is held", err)
	}
	write(t, first, journal.Record{Kind: journal.Begin}, journal.Record{Kind: journal.Intent})
	must(t, errors.Join(first.Close(), second.Close()))
	second = open(t, root, other)
	var unfinished *UnfinishedError
	if err := second.Claim(object); !errors.As(err, &unfinished) || unfinished.Dir != first.dir {
		t.Errorf("got %v, want that the run at port %d is unfinished", err, id.Port)
	}
	must(t, second.Close())
	again, err := OpenUnfinished(first.dir, "")
	must(t, err)
	t.Cleanup(func() { _ = again.Close() })
	second = open(t, root, other)
	if err := second.Claim(object); !errors.As(err, &held) {
		t.Errorf("got %v, want that recover has it", err)
	}
}

// TestAWriteThatFailsSaysNothingOfTheServer once a run has begun: its caller knows what was done.
func TestAWriteThatFailsSaysNothingOfTheServer(t *testing.T) {
	s := open(t, t.TempDir(), server(t))
	write(t, s, journal.Record{Kind: journal.Begin})
	must(t, s.file.Close())
	for _, err := range []error{s.Write(journal.Record{Kind: journal.Ready}), s.Write(journal.Record{Kind: journal.Ready})} {
		var state *StateError
		if !errors.As(err, &state) || strings.Contains(err.Error(), "touched") || strings.Contains(err.Error(), "XDG") {
			t.Errorf("got %v", err)
		}
	}
	if err := s.End(0, ""); err == nil || !strings.HasPrefix(err.Error(), "the server runs what is kept, and ") || !strings.HasSuffix(err.Error(), "; 'rooftop recover' ends the run") {
		t.Errorf("got %v", err)
	}
}

// TestARestoreWithoutAJournal ends with what is true of the server, if no record of it could be written.
func TestARestoreWithoutAJournal(t *testing.T) {
	for kind, want := range map[journal.Kind]string{
		journal.Reverted: "the server runs what is kept, and the journal cannot be written in ",
		journal.Stopped:  "the server does not run its kept launch: 'rooftop recover' restores it",
	} {
		t.Run(string(kind), func(t *testing.T) {
			s := open(t, t.TempDir(), server(t))
			trial := journal.Record{Kind: journal.Intent, Changes: []engine.Change{{Flag: "--max-num-seqs", From: "4", To: "8"}}}
			write(t, s, journal.Record{Kind: journal.Begin}, trial, journal.Record{Kind: journal.Ready})
			must(t, s.file.Close())
			if err := s.Write(journal.Record{Kind: kind}); err == nil {
				t.Fatal("written to a closed file")
			}
			if err := s.End(0, ""); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}

// TestNothingIsWrittenInAUsersHome by root, which may have it of sudo, nor read by it.
func TestNothingIsWrittenInAUsersHome(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT CHECKED: root with the HOME of a user; only root is")
	}
	const nobody = 65534
	home := t.TempDir()
	must(t, os.Chown(home, nobody, nobody))
	root := Root(filepath.Join(home, ".local", "state"))
	_, err := OpenStore(root, server(t), "")
	var state *StateError
	if !errors.As(err, &state) || !strings.Contains(err.Error(), "belongs to another user (uid 65534): run rooftop as that user, or set XDG_STATE_HOME") {
		t.Errorf("got %v", err)
	}
	if list := names(t, home); len(list) > 0 {
		t.Errorf("made %v", list)
	}
	// Directories of root's, in which the user has led a journal to nowhere.
	dir := filepath.Join(root, "server")
	must(t, errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, identityName), []byte("{}"), 0o600), syscall.Mkfifo(filepath.Join(dir, journalName), 0o666)))
	for name, read := range map[string]func() error{
		"open":   func() error { _, err := OpenStore(root, server(t), ""); return err },
		"repair": func() error { _, err := OpenUnfinished(dir, ""); return err },
		"list":   func() error { _, err := Dirs(root); return err },
		"tidy":   func() error { return Tidy(root) },
	} {
		if err := read(); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRefusedBeforeAnythingIsTouched(t *testing.T) {
	for name, c := range map[string]struct {
		lay  func(t *testing.T, dir string) // dir is the server's
		want string
	}{
		"disk full": {func(t *testing.T, dir string) {
			must(t, os.MkdirAll(dir, 0o700))
			must(t, os.Symlink("/dev/full", filepath.Join(dir, ReserveName)))
		}, "is free there"},
		"a file in the way": {func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Dir(dir), nil, 0o600))
		}, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			root, id := filepath.Join(t.TempDir(), "servers"), server(t)
			c.lay(t, filepath.Join(root, id.Name()))
			_, err := OpenStore(root, id, "")
			var state *StateError
			if !errors.As(err, &state) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestWhatCannotBeListedSaysTheNextStep(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, identityName)
	must(t, os.WriteFile(path, []byte("[]"), 0o600))
	if _, err := ReadIdentity(dir); err == nil || !strings.HasPrefix(err.Error(), path+" is damaged (") || !strings.HasSuffix(err.Error(), ": mend it, or move its directory away once the server runs as it should") {
		t.Errorf("got %v", err)
	}
	if _, err := Dirs(path); err == nil || !strings.HasSuffix(err.Error(), "not a directory: move what lies there away, or set XDG_STATE_HOME to another place") {
		t.Errorf("got %v", err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestIdentity(t *testing.T) {
	base := Identity{Host: "127.0.0.1", Port: 8000, Model: "meta-llama/Llama-3.1-8B", GPUs: []string{"GPU-1", "GPU-2"}}
	same := func(name string, alter func(*Identity), want bool) {
		t.Run(name, func(t *testing.T) {
			other := base
			alter(&other)
			if got := other.Name() == base.Name(); got != want {
				t.Errorf("%s and %s: same %v, want %v", base.Name(), other.Name(), got, want)
			}
		})
	}
	same("localhost", func(id *Identity) { id.Host = "localhost" }, true)
	same("IPv6 loopback", func(id *Identity) { id.Host = "[::1]" }, true)
	same("the machine's name", func(id *Identity) { id.Host = Hostname() }, true)
	addresses, err := net.InterfaceAddrs()
	must(t, err)
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			same("its address "+prefix.Addr().String(), func(id *Identity) { id.Host = prefix.Addr().String() }, true)
		}
	}
	same("another loopback address", func(id *Identity) { id.Host = "127.0.0.2" }, false)
	same("another address", func(id *Identity) { id.Host = "192.0.2.7" }, false)
	same("GPUs in another order", func(id *Identity) { id.GPUs = []string{"GPU-2", "GPU-1"} }, true)
	same("another URL", func(id *Identity) { id.URL = "http://x" }, true)
	same("another port", func(id *Identity) { id.Port = 8001 }, false)
	same("another host", func(id *Identity) { id.Host = "gpu-7" }, false)
	same("another model", func(id *Identity) { id.Model = "other/Llama-3.1-8B" }, false)
	same("other GPUs", func(id *Identity) { id.GPUs = []string{"GPU-1"} }, false)
	same("another machine", func(id *Identity) { id.Machine = "elsewhere" }, false)
	if name := base.Name(); !strings.HasPrefix(name, "localhost-8000-Llama-3.1-8B-") {
		t.Errorf("name %q", name)
	}
	hostile := Identity{Host: "x", Model: "../../etc/\x1b[31m" + strings.Repeat("m", 500)}.Name()
	if filepath.Base(hostile) != hostile || len(hostile) > 100 || strings.ContainsAny(hostile, "\x1b/ ") {
		t.Errorf("name %q", hostile)
	}
}

func TestRecorderAndPast(t *testing.T) {
	root, id := t.TempDir(), server(t)
	s := open(t, root, id)
	write(t, s, journal.Record{Kind: journal.Begin})
	r := NewRecorder(s)
	shown := &loop.Snapshot{}
	r.Latest = func() *loop.Snapshot { return shown }
	advice := &engine.Recommendation{Finding: "concurrency-saturation", Fix: engine.Fix{Flag: "--max-num-seqs", From: "4", To: "32",
		Predicted: []engine.Prediction{{Metric: OutputMetric, Unit: "ratio", Low: stat.Some(0.5), Mid: stat.Some(0.8), High: stat.Some(1.1)}}}}
	verdictOf := func(d verdict.Direction, mid float64) *effect.Delta {
		return &effect.Delta{Direction: d, Verdict: &verdict.Result{Known: true, Goal: verdict.Throughput, Effect: verdict.Interval{Low: mid - .1, Mid: mid, High: mid + .1}}}
	}
	tell := func(d verdict.Direction, mid float64) {
		r.Tell(loop.Event{Kind: loop.EventRecommendation, Advice: advice})
		r.Tell(loop.Event{Kind: loop.EventApplying, Change: engine.Change{Flag: advice.Flag, To: advice.To}})
		// The loop's verdict event names the prediction and not the finding.
		r.Tell(loop.Event{Kind: loop.EventVerdict, Delta: verdictOf(d, mid), Advice: &engine.Recommendation{Fix: engine.Fix{Predicted: advice.Predicted}}})
	}
	tell(verdict.Better, 0.7)
	shown = &loop.Snapshot{Noise: []float64{0.1, -1}}
	tell(verdict.NotComparable, 3)
	r.Tell(loop.Event{Kind: loop.EventApplying, Change: engine.Change{Flag: "--other"}})
	r.Tell(loop.Event{Kind: loop.EventVerdict, Delta: verdictOf(verdict.Plateau, 0)})
	r.Tell(loop.Event{Kind: loop.EventFinished, Finished: &loop.Finished{ExitCode: 3}})
	if r.Err() != nil {
		t.Error(r.Err())
	}
	got, err := s.Past()
	must(t, err)
	want := Past{Repeats: []float64{math.Log(1.1)}} // no output after a start is no repeat
	if d := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestPastIsBoundedAndNewestFirst(t *testing.T) {
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	var records []journal.Record
	for i := range 80 {
		log := float64(i)
		records = append(records, journal.Record{Kind: journal.Spread, Log: &log, Time: now.Add(-time.Duration(120-i) * 24 * time.Hour)})
	}
	p := past(records, now)
	if len(p.Repeats) != maxPast || p.Repeats[0] != 79 {
		t.Errorf("%d repeats, first %v", len(p.Repeats), p.Repeats[0])
	}
	p = past(records[:40], now)
	if len(p.Repeats) != 10 { // of 120 to 81 days ago, those of 90 and fewer
		t.Errorf("%d repeats of the last 90 days, want 10", len(p.Repeats))
	}
}

// What a restart took is read from what stands before it and behind it: of starts that
// succeeded, and not too many of them.
func TestPastTellsHowLongARestartTook(t *testing.T) {
	begin := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	const canary = "canary" // in place of a kind: its intent
	type step struct {
		kind journal.Kind
		at   int // seconds
		run  string
	}
	change := func(run string, at, took int) []step {
		return []step{{journal.Intent, at, run}, {journal.Stopped, at + 1, run}, {journal.Started, at + 2, run}, {journal.Ready, at + took, run}}
	}
	for _, c := range []struct {
		name  string
		steps []step
		want  time.Duration
	}{
		{"nothing", nil, 0},
		{"a first start of rooftop's own", []step{{journal.Begin, 0, "a"}, {journal.Started, 1, "a"}, {journal.Ready, 41, "a"}}, 0},
		{"a change", change("a", 10, 70), 70 * time.Second},
		{"a change and its revert", []step{{journal.Intent, 0, "a"}, {journal.Ready, 50, "a"}, {journal.Intent, 100, "a"}, {journal.Reverted, 160, "a"}}, time.Minute},
		{"a start that failed, with its revert", slices.Concat(change("a", 0, 30), change("a", 100, 300), []step{{journal.Failed, 400, "a"}}), 30 * time.Second},
		{"a run that was cut off", []step{{journal.Intent, 0, "a"}, {journal.Begin, 500, "b"}, {journal.Ready, 600, "b"}}, 0},
		{"a canary, then the change", slices.Concat([]step{{canary, 0, "a"}, {journal.Reverted, 500, "a"}}, change("a", 500, 70)), 70 * time.Second},
		{"the latest count", slices.Concat(change("a", 0, 90), change("a", 100, 20), change("a", 200, 21), change("a", 300, 22), change("a", 400, 23), change("a", 500, 24)), 24 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			var records []journal.Record
			for _, s := range c.steps {
				r := journal.Record{Kind: s.kind, Run: s.run, Time: begin.Add(time.Duration(s.at) * time.Second)}
				if s.kind == canary {
					r.Kind, r.Mode = journal.Intent, ModeCanary
				}
				records = append(records, r)
			}
			if got := past(records, begin.Add(time.Hour)).Start; got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
			if got := past(records, begin.Add(2*pastAge)).Start; got != 0 {
				t.Errorf("%v of long ago", got)
			}
		})
	}
}

// However a server of another machine is called, its addresses are the same. One that
// answers for many by their names tells nothing, and a resolver that does not answer
// is none.
func TestResolvedMeets(t *testing.T) {
	asked := 0
	lookup := func(ctx context.Context, _, host string) ([]netip.Addr, error) {
		asked++
		switch host {
		case "silent":
			<-ctx.Done()
			return nil, ctx.Err()
		case "here":
			return []netip.Addr{netip.MustParseAddr("127.0.1.1")}, nil
		case "unknown":
			return nil, errors.New("no such host")
		}
		return []netip.Addr{netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("::ffff:192.0.2.7"), netip.MustParseAddr("2001:db8::7")}, nil
	}
	at := func(host string, port int) []string {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		return Identity{Host: host, Port: port}.resolved(ctx, lookup).normal().places()
	}
	gpu := at("gpu-7", 8000)
	for _, c := range []struct {
		host string
		port int
		want bool
	}{
		{"192.0.2.7", 8000, true},
		{"GPU-7.example", 8000, true},
		{"[2001:db8::7]", 8000, true},
		{"192.0.2.7", 8001, false},
		{"unknown", 8000, false},
		{"silent", 8000, false},
		{"here", 8000, false},
	} {
		if got := meet(gpu, at(c.host, c.port)); got != c.want {
			t.Errorf("%s:%d meets %v: %v", c.host, c.port, gpu, got)
		}
	}
	if !meet(at("here", 8000), at("localhost", 8000)) {
		t.Error("a name of this Hostname does not meet it")
	}
	if meet(at("127.0.0.2", 8000), at("127.0.0.3", 8000)) || meet(at("127.0.0.2", 8000), at("localhost", 8000)) {
		t.Error("servers at different loopback addresses meet")
	}
	if !meet(at("127.0.0.2", 8000), at("::ffff:127.0.0.2", 8000)) {
		t.Error("one loopback address does not meet itself")
	}
	if meet(at("a.example", 443), at("b.example", 443)) {
		t.Error("two servers behind one gateway meet")
	}
	before := asked
	if at("localhost", 8000); asked != before {
		t.Error("this machine's own name was looked up")
	}
}

// TestARemovedJournalIsWrittenAgain before the next act, with all that recover needs.
func TestARemovedJournalIsWrittenAgain(t *testing.T) {
	root := t.TempDir()
	s := open(t, filepath.Join(root, "rooftop", "servers"), server(t))
	kept, err := s.Keep(&launcher.Launch{Argv: []string{"vllm", "serve"}})
	must(t, err)
	write(t, s, journal.Record{Kind: journal.Begin, Launch: kept}, journal.Record{Kind: journal.Intent})
	for _, remove := range []string{"rooftop", s.Dir()[len(root):], s.Dir()[len(root):] + "/journal.jsonl"} {
		must(t, os.RemoveAll(filepath.Join(root, remove)))
		before := s.State().Seq
		next, err := s.Keep(&launcher.Launch{Argv: []string{"vllm", "serve", remove}})
		must(t, err)
		write(t, s, journal.Record{Kind: journal.Started, Launch: next})
		f, err := readFile(s.Dir(), journalName)
		if err != nil || len(f.Records) != before+1 || !cmp.Equal(journal.Reduce(f.Records), s.State()) {
			t.Errorf("%s: %d records, want %d: %v", remove, len(f.Records), before+1, err)
		}
		for _, name := range []string{kept, next} {
			if _, err := ReadLaunch(s.Dir(), name); err != nil {
				t.Errorf("%s: %v", remove, err)
			}
		}
		if id, err := ReadIdentity(s.Dir()); err != nil || id.Name() != s.Identity().Name() {
			t.Errorf("%s: %v, %v", remove, id, err)
		}
		if info, err := os.Stat(s.Dir()); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", remove, info.Mode(), err)
		}
	}
}
