package session

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/rules"
)

// measured records one measurement of a fake server with four slots.
func measured(t *testing.T, d time.Duration) []byte {
	t.Helper()
	var file bytes.Buffer
	rec := NewRecorder(&file)
	header := Header{Schema: RecordingSchema, Version: "test", Started: time.Now().UTC(), Inputs: slots("4"), Target: engine.Target{URL: "http://127.0.0.1:8000/metrics"}}
	measure(t.Context(), t, Plan{Server: &Server{Header: header, Pages: newServer(), GPUs: &card{}}, Duration: d, Record: rec})
	must(t, rec.Close())
	return file.Bytes()
}

// watched records a live session on a fake server that is restarted after 30 s
// with 32 slots.
func watched(t *testing.T, d time.Duration) []byte {
	t.Helper()
	var file bytes.Buffer
	rec := NewRecorder(&file)
	pages, began := newServer(), time.Now()
	pages.boot = func(at time.Duration) float64 {
		if at > 30*time.Second {
			return 1100
		}
		return 1000
	}
	l := NewLive(LivePlan{
		Loop: loop.Plan{Started: time.Now().UTC(), Version: "test", Rules: rules.All(), Measure: 12 * time.Second},
		Attach: func(context.Context) (*Server, error) {
			h := Header{Schema: RecordingSchema, Inputs: slots("4"), Target: engine.Target{URL: "http://127.0.0.1:8000/metrics"}}
			if time.Since(began) > 30*time.Second {
				h.Inputs = slots("32")
			}
			return &Server{Header: h, Pages: pages}, nil
		},
		Clock: func() time.Duration { return time.Since(began) }, Record: rec,
	})
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	must(t, l.Run(ctx))
	must(t, rec.Close())
	return file.Bytes()
}

func open(t *testing.T, file []byte) *Recording {
	t.Helper()
	rec, err := OpenRecording(bytes.NewReader(file))
	must(t, err)
	return rec
}

// playing is a running player, in a synctest bubble.
type playing struct {
	*Player
	t    *testing.T
	done chan error
}

func play(t *testing.T, file []byte) *playing {
	t.Helper()
	p, err := NewPlayer(open(t, file), "test")
	must(t, err)
	w := &playing{p, t, make(chan error, 1)}
	go func() { w.done <- p.Run(t.Context()) }()
	synctest.Wait()
	return w
}

// at checks the position, to the nearest poll.
func (p *playing) at(want time.Duration) {
	p.t.Helper()
	now, of, speed := p.At()
	if d := now - want; d < -engine.PollInterval || d > engine.PollInterval {
		p.t.Errorf("at %v of %v, speed %v; want %v", now, of, speed, want)
	}
	if s := p.Latest(); s == nil || s.Now > now || now-s.Now > engine.WindowLength+engine.PollInterval {
		p.t.Errorf("at %v it shows %+v", now, s.Now)
	}
}

func (p *playing) quit() {
	p.t.Helper()
	p.Do(loop.CommandQuit)
	if err := <-p.done; err != nil {
		p.t.Error(err)
	}
}

func TestPlayerPlaysPausesAndSeeks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := play(t, measured(t, 60*time.Second))
		p.at(0)
		pass(5 * time.Second)
		p.at(5 * time.Second)
		if _, of, _ := p.At(); of.Round(100*time.Millisecond) != time.Minute {
			t.Errorf("of %v, want a minute", of)
		}
		p.Do(loop.CommandPause)
		pass(time.Hour)
		p.at(5 * time.Second)
		p.Do(loop.CommandPause)
		pass(time.Second)
		p.at(6 * time.Second)
		p.Speed(10)
		pass(2 * time.Second)
		p.at(26 * time.Second)
		p.Speed(0)
		p.Seek(-16 * time.Second)
		pass(time.Second)
		p.at(10 * time.Second)
		p.Seek(-time.Hour)
		pass(time.Second)
		p.at(0)
		p.Seek(50 * time.Second)
		pass(0)
		p.at(50 * time.Second)
		p.Seek(-10 * time.Second)
		p.Seek(-10 * time.Second)
		pass(0)
		p.at(30 * time.Second)
		p.Speed(1)
		pass(5 * time.Second) // through a part that was played before
		p.at(35 * time.Second)
		p.Seek(time.Hour)
		pass(time.Second)
		p.at(60 * time.Second)
		pass(time.Hour) // it waits at the end
		p.at(60 * time.Second)
		p.Seek(-20 * time.Second)
		pass(5 * time.Second)
		p.at(45 * time.Second)
		if p.Speed(1000); true {
			if _, _, speed := p.At(); speed != maxSpeed {
				t.Errorf("speed %v, want %v at most", speed, maxSpeed)
			}
		}
		pass(time.Second)
		p.at(60 * time.Second)
		p.quit()
	})
}

// TestPlayerShowsWhatWasLive checks that every position shows the same as playing straight through,
// also after seeking back.
func TestPlayerShowsWhatWasLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := watched(t, 90*time.Second)
		var all []*loop.Snapshot
		if err := Snapshots(open(t, file), "test", func(s *loop.Snapshot) bool { all = append(all, s); return true }); err != nil {
			t.Fatal(err)
		}
		last := all[len(all)-1]
		if len(last.Iterations) != 1 || last.Phase != loop.PhaseDone || last.Iterations[0].Noticed != loop.AsRecommended {
			t.Fatalf("phase %d, iterations %+v: the recording does not show the restart", last.Phase, last.Iterations)
		}
		p := play(t, file)
		p.Speed(0)
		for _, by := range []time.Duration{40, 45, -30, 20, -70, 85, -1, -40} {
			p.Seek(by * time.Second)
			pass(0)
			now, _, _ := p.At()
			got := p.Latest()
			// The snapshot at the position, or the one kept before it: at most a window older.
			i := slices.IndexFunc(all, func(s *loop.Snapshot) bool { return s.Now == got.Now })
			if i < 0 || got.Now > now || now-got.Now > engine.WindowLength+engine.PollInterval {
				t.Fatalf("at %v it shows a snapshot of %v", now, got.Now)
			}
			same := false
			for ; i < len(all) && all[i].Now == got.Now; i++ {
				same = same || all[i].Phase == got.Phase && len(all[i].Journal) == len(got.Journal) && len(all[i].Points) == len(got.Points)
			}
			if !same {
				t.Errorf("at %v it shows phase %d, journal of %d, %d points, which never was", now, got.Phase, len(got.Journal), len(got.Points))
			}
		}
		p.quit()
	})
}

func TestPlayerSaysThatARecordingCannotBeChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := NewPlayer(open(t, measured(t, 10*time.Second)), "test")
		must(t, err)
		if p.Export() {
			t.Error("a player without an export takes none")
		}
		var fail error
		p.SetExport(func(*loop.Snapshot) ([]string, error) { return []string{"report.md"}, fail })
		done := make(chan error, 1)
		go func() { done <- p.Run(t.Context()) }()
		pass(time.Second)
		before := p.Latest()
		if can := before.Can; can[loop.CommandApply].OK || can[loop.CommandApply].Why == "" || !can[loop.CommandPause].OK {
			t.Errorf("can %+v", can)
		}
		p.Do(loop.CommandApply)
		pass(0)
		p.Export()
		pass(0)
		fail = errors.New("disk full")
		p.Export()
		pass(0)
		s := p.Latest()
		said := s.Journal[len(before.Journal):]
		if len(said) != 3 || said[0].Text != recordingReadOnly || said[1].Text != "report written: report.md" || said[2].Text != "no report was written: disk full" {
			t.Errorf("said %+v", said)
		}
		for i := 1; i < len(s.Journal); i++ {
			if s.Journal[i].Seq <= s.Journal[i-1].Seq {
				t.Errorf("entry %d has number %d behind %d", i, s.Journal[i].Seq, s.Journal[i-1].Seq)
			}
		}
		if s.Seq <= before.Seq {
			t.Error("the snapshot's number did not grow")
		}
		p.Do(loop.CommandQuit)
		<-done
	})
}

func TestPlayerOfARecordingThatWasCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := measured(t, 30*time.Second)
		p := play(t, file[:len(file)/2])
		p.Speed(60)
		pass(10 * time.Second)
		s := p.Latest()
		if last := s.Journal[len(s.Journal)-1]; last.Text != noteCutOff {
			t.Errorf("the last entry is %q", last.Text)
		}
		if now, of, _ := p.At(); now < 5*time.Second || now > 25*time.Second || of != now {
			t.Errorf("it ends at %v of %v", now, of)
		}
		p.quit()
	})
}

// TestPlayerOfAPipe checks that the length of a recording that cannot be read twice is found while it
// plays.
func TestPlayerOfAPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec, err := OpenRecording(bufio.NewReader(bytes.NewReader(measured(t, 30*time.Second))))
		must(t, err)
		p, err := NewPlayer(rec, "test")
		must(t, err)
		done := make(chan error, 1)
		go func() { done <- p.Run(t.Context()) }()
		p.Seek(time.Hour)
		pass(time.Second)
		if now, of, _ := p.At(); now != of || now < 29*time.Second {
			t.Errorf("at %v of %v", now, of)
		}
		p.Do(loop.CommandQuit)
		<-done
	})
}

func TestReplayOfALiveSessionDiagnosesItsLastRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := watched(t, 60*time.Second)
		d, err := replayBytes(file)
		must(t, err)
		notes := strings.Join(d.Notes, "; ")
		if !strings.Contains(notes, "read the server's settings 2 times") {
			t.Errorf("notes %q", notes)
		}
		if d.Windows.Collected < 12 || d.Windows.Collected > 15 || d.Duration > 30*time.Second || d.Duration < 28*time.Second {
			t.Errorf("windows %+v over %v, want those of the last 29 s", d.Windows, d.Duration)
		}
		if d.Facts.MaxNumSeqs.Value != 32 {
			t.Errorf("slots %+v, want those of the last run", d.Facts.MaxNumSeqs)
		}
		cut, err := replayBytes(file[:len(file)/3])
		must(t, err)
		if notes := strings.Join(cut.Notes, "; "); !strings.Contains(notes, noteCutOff) || cut.Facts.MaxNumSeqs.Value != 4 {
			t.Errorf("cut off: notes %q, slots %+v", notes, cut.Facts.MaxNumSeqs)
		}
	})
}

// TestAKilledSessionLeavesWhatItHad checks that all polls but those of the last window are in the file
// before it is closed.
func TestAKilledSessionLeavesWhatItHad(t *testing.T) {
	var file bytes.Buffer
	r := NewRecorder(&file)
	r.write(line{Header: &Header{Schema: RecordingSchema}})
	for at := time.Duration(0); at < 20*time.Second; at += engine.PollInterval {
		r.write(line{Poll: &Poll{T: at, PageT: at, Body: "vllm:num_requests_running 1\n"}})
	}
	if got := open(t, file.Bytes()).length(t.Context()); got < 17*time.Second {
		t.Errorf("the file holds %v of 20 s", got)
	}
}

func TestLengthOfARecording(t *testing.T) {
	for text, want := range map[string]time.Duration{
		`{"at":1500,"poll":{"t":1000`:        1500,
		`{"poll":{"t":250000000,"page_t":26`: 250 * time.Millisecond,
		`{"end":{"duration":30000000000,`:    30 * time.Second,
		`{"at":7}`:                           7,
		`{"header":{"schema":"x"`:            0,
		``:                                   0,
		`{"at":`:                             0,
		`{"at":x,`:                           0,
	} {
		if got := timeOf([]byte(text)); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	if got := open(t, recordedPolls(3000)).length(t.Context()); got != 2999*time.Second {
		t.Errorf("length %v", got)
	}
}

// recordedPolls returns a recording of one endless series of one poll per second.
func recordedPolls(n int) []byte {
	var file bytes.Buffer
	r := NewRecorder(&file)
	r.write(line{Header: &Header{Schema: RecordingSchema}})
	for i := range n {
		at := time.Duration(i) * time.Second
		r.write(line{At: at, Poll: &Poll{T: at, PageT: at, Body: "vllm:num_requests_running 1\n"}})
	}
	_ = r.Close()
	return file.Bytes()
}
