package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/collect/ggml"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// living is a target that computes in the time of the test, when it is told to.
type living struct {
	lock    sync.Mutex
	decoder *decoder
	rests   bool
	end     error // of Next
	refuses map[optrace.Detail]error
	asked   []optrace.Detail
}

func (s *living) do(f func()) {
	s.lock.Lock()
	defer s.lock.Unlock()
	f()
}

func (s *living) SetDetail(d optrace.Detail) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if err := s.refuses[d]; err != nil {
		return err
	}
	s.asked = append(s.asked, d)
	return s.decoder.SetDetail(d)
}

// Next is one call and the pause after it, or what a level that changed begins with.
func (s *living) Next(ctx context.Context) ([]optrace.Event, error) {
	s.lock.Lock()
	rests, end, took := s.rests && !s.decoder.change, s.end, 2*s.decoder.each
	s.lock.Unlock()
	switch {
	case end != nil:
		return nil, end
	case rests:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	time.Sleep(took)
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.decoder.Next(ctx)
}

func (s *living) Tables() *optrace.Tables { return s.decoder.Tables() }
func (s *living) Target() optrace.Target  { return s.decoder.Target() }
func (s *living) Dropped() int64          { return 0 }
func (s *living) Gaps() []optrace.Gap     { return nil }
func (s *living) Close() error            { return s.decoder.Close() }

// sitting is a live trace of a target, with who looks at it.
type sitting struct {
	t      *testing.T
	target *living
	live   *liveTrace
	leave  context.CancelFunc
	ended  chan error
}

// begin traces a target whose graphs take as long each.
func begin(t *testing.T, each time.Duration, o traceOptions) *sitting {
	t.Helper()
	if o.detail == 0 {
		o.detail = optrace.LevelTensor
	}
	if o.maxOverhead == 0 {
		o.maxOverhead = defaultOverhead
	}
	o.env, o.machine, o.catalog = variables(), steady("Example CPU 1000", "0-3"), builtIn(t)
	s := &sitting{t: t, target: &living{decoder: newDecoder(each, 1<<30), rests: true, refuses: map[optrace.Detail]error{}}, ended: make(chan error, 1)}
	s.live = newLiveTrace(&o, s.target)
	if got := s.live.Latest(); got == nil || got.State != optrace.LiveAttaching {
		t.Errorf("at first %+v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.leave = cancel
	go func() { s.ended <- s.live.run(ctx) }()
	return s
}

// builtIn is the catalog without a person's own.
func builtIn(t *testing.T) *catalog.Catalog {
	t.Helper()
	c, _, err := userCatalog("")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A roof that was measured before is what operators of a live trace are judged by.
func TestLiveTraceByTheRoofThatIsKept(t *testing.T) {
	m := steady("Example CPU 1000", "0-3")
	env, _ := measuredRoof(t, m)
	synctest.Test(t, func(t *testing.T) {
		o := &traceOptions{detail: optrace.LevelTensor, maxOverhead: defaultOverhead, env: env, machine: m, catalog: builtIn(t)}
		target := &living{decoder: newDecoder(10*time.Millisecond, 1<<30)}
		l := newLiveTrace(o, target)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := l.run(ctx); err != nil {
			t.Fatal(err)
		}
		want, _ := o.roofOf(t.Context(), 1)
		if got := l.Latest().Summary.Roof; !want.Known() || got.From != optrace.RoofMeasured || got.BytesPerSecond != want.BytesPerSecond {
			t.Errorf("the roof is %+v, want %+v", got, want)
		}
	})
}

// over ends it.
func (s *sitting) over() error {
	s.t.Helper()
	s.leave()
	err := <-s.ended
	if !s.target.decoder.closed {
		s.t.Error("the target is still attached to")
	}
	return err
}

// until waits for a snapshot.
func (s *sitting) until(what string, is func(*optrace.Live) bool) *optrace.Live {
	s.t.Helper()
	for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(20 * time.Millisecond) {
		if l := s.live.Latest(); is(l) {
			return l
		}
	}
	s.t.Fatalf("no %s: %+v", what, s.live.Latest())
	return nil
}

func (s *sitting) state(want optrace.LiveState) *optrace.Live {
	s.t.Helper()
	return s.until(fmt.Sprintf("state %d", want), func(l *optrace.Live) bool { return l.State == want })
}

func (s *sitting) says(text string) *optrace.Live {
	s.t.Helper()
	return s.until(text, func(l *optrace.Live) bool { return strings.Contains(l.Notice, text) })
}

func (s *sitting) rests(rests bool) { s.target.do(func() { s.target.rests = rests }) }

// last is the level that the target was watched at last.
func (s *sitting) last() (d optrace.Detail) {
	s.target.do(func() { d = s.target.asked[len(s.target.asked)-1] })
	return d
}

// do is a key.
func (s *sitting) do(f func()) { s.live.wish(f) }

func TestLiveTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, 10*time.Millisecond, traceOptions{})
		first := s.state(optrace.LiveWaiting)
		if s.last() != weighed || first.Detail != optrace.LevelTensor || first.Summary != nil {
			t.Errorf("%v is watched before anything is computed: %+v", s.last(), first)
		}
		s.do(func() { s.live.pause(true) })
		s.says("Nothing is recorded yet")
		s.do(s.live.export)
		s.says("nothing to export")
		s.rests(false)
		s.state(optrace.LiveWeighing)
		s.state(optrace.LiveTracing)
		if s.last() != optrace.LevelTensor {
			t.Errorf("%v is watched", s.last())
		}
		l := s.until("figures", func(l *optrace.Live) bool { return l.Summary != nil && l.Since > 5*time.Second })
		c := l.Summary.Coverage
		if graphs := l.Since.Seconds() / 0.02; float64(c.Graphs) < graphs-50 || float64(c.Graphs) > graphs+1 || c.Partial > 0 {
			t.Errorf("%d graphs, %d partial in %v at 20 ms each", c.Graphs, c.Partial, l.Since)
		}
		if len(l.Rates) != rateSeconds || len(l.Graph.Lanes) != 1 || !strings.Contains(l.Notice, "is expected to cost") || len(l.Notice) > 78 /* a line of 80 */ || l.Summary.Observer.HitsPerToken == 0 {
			t.Errorf("%d rates, %d lanes, %q, %+v", len(l.Rates), len(l.Graph.Lanes), l.Notice, l.Summary.Observer)
		}

		s.do(func() { s.live.pause(true) })
		l = s.state(optrace.LivePaused)
		if s.last() != optrace.LevelToken || l.Detail != optrace.LevelTensor {
			t.Errorf("paused, %v is watched; shown is %v", s.last(), l.Detail)
		}
		time.Sleep(time.Second) // what was under way has come
		before := s.live.Latest()
		time.Sleep(5 * time.Second)
		if after := s.live.Latest(); after.Since != before.Since || after.Summary.Coverage.Events != before.Summary.Coverage.Events || after.Now <= before.Now {
			t.Errorf("paused, it goes on: %+v\n%+v", before, after)
		}
		s.do(func() { s.live.aim(optrace.LevelOperator) })
		s.until("another level", func(l *optrace.Live) bool { return l.Detail == optrace.LevelOperator })
		if s.last() != optrace.LevelToken {
			t.Errorf("paused, %v is watched", s.last())
		}
		s.do(func() { s.live.pause(false) })
		s.state(optrace.LiveTracing)
		s.until("more", func(l *optrace.Live) bool { return l.Summary.Coverage.Events > before.Summary.Coverage.Events })
		if s.last() != optrace.LevelOperator {
			t.Errorf("after the pause %v is watched", s.last())
		}

		s.rests(true)
		s.state(optrace.LiveWaiting)
		time.Sleep(3 * time.Second)
		if got := s.live.Latest(); got.State != optrace.LiveWaiting || got.Summary == nil {
			t.Errorf("at rest %+v", got)
		}
		s.rests(false)
		s.state(optrace.LiveTracing)

		s.target.do(func() { s.target.end = io.EOF })
		time.Sleep(time.Second)
		if l := s.live.Latest(); l.State != optrace.LiveEnded || l.Notice != "process 4242 has ended" || l.Summary == nil {
			t.Errorf("a second after its end: %+v", l)
		}
		if !s.target.decoder.closed {
			t.Error("the probes are still there")
		}
		l = s.live.Latest()
		time.Sleep(10 * time.Second)
		if s.live.Latest() != l {
			t.Error("what has ended is told again")
		}
		if err := s.over(); err != nil {
			t.Error(err)
		}
	})
}

// While nothing changes the same snapshot is handed out, but for the clock.
func TestLiveTraceOfAResultThatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, 10*time.Millisecond, traceOptions{})
		s.state(optrace.LiveWaiting)
		seen := map[*optrace.Live]bool{}
		for range 500 {
			time.Sleep(10 * time.Millisecond)
			seen[s.live.Latest()] = true
		}
		if len(seen) > 6 {
			t.Errorf("%d snapshots of 5 seconds in which nothing happens", len(seen))
		}
		s.rests(false)
		s.state(optrace.LiveTracing)
		clear(seen)
		for range 1000 {
			time.Sleep(10 * time.Millisecond)
			seen[s.live.Latest()] = true
		}
		if len(seen) < 20 || len(seen) > 41 {
			t.Errorf("%d snapshots of 10 seconds, want two to four a second", len(seen))
		}
		if err := s.over(); err != nil {
			t.Error(err)
		}
	})
}

// What costs too much is asked for: y watches all the same, n what costs less.
func TestLiveTraceThatCostsTooMuch(t *testing.T) {
	for _, yes := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := begin(t, 50*time.Microsecond, traceOptions{})
			s.rests(false)
			l := s.state(optrace.LiveAsking)
			if !strings.Contains(l.Question, "Detail tensor would cost ") || !strings.Contains(l.Question, "more than --max-overhead 4") || s.last() != weighed {
				t.Errorf("asks %q while %v is watched", l.Question, s.last())
			}
			time.Sleep(20 * time.Second)
			if l := s.live.Latest(); l.State != optrace.LiveAsking || l.Summary != nil {
				t.Errorf("an answer is not waited for: %+v", l)
			}
			s.do(func() { s.live.answer(yes) })
			l = s.state(optrace.LiveTracing)
			if want := optrace.LevelTensor; yes != (s.last() == want) || l.Detail != s.last() || l.Question != "" {
				t.Errorf("%v: %v is watched, %v told", yes, s.last(), l.Detail)
			}
			if !yes && s.last()&optrace.DetailTensor != 0 {
				t.Errorf("no, and %v is watched", s.last())
			}
			// More is asked for again, and meanwhile what was goes on.
			was := s.last()
			s.do(func() { s.live.aim(was | optrace.LevelTensor | optrace.DetailBarrier) })
			l = s.state(optrace.LiveAsking)
			if s.last() != was || !strings.Contains(l.Question, "n stays with "+was.String()) {
				t.Errorf("asks %q while %v is watched", l.Question, s.last())
			}
			events := l.Summary
			s.until("more", func(l *optrace.Live) bool { return l.Summary != events })
			s.do(func() { s.live.answer(false) })
			s.state(optrace.LiveTracing)
			if s.last() != was {
				t.Errorf("no, and %v is watched, not %v", s.last(), was)
			}
			s.do(func() { s.live.answer(true) }) // of no question
			s.do(func() { s.live.aim(optrace.LevelToken) })
			s.until("less", func(l *optrace.Live) bool { return l.Detail == optrace.LevelToken && l.State == optrace.LiveTracing })
			if err := s.over(); err != nil {
				t.Error(err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, 50*time.Microsecond, traceOptions{force: true})
		s.rests(false)
		s.state(optrace.LiveTracing)
		if s.last() != optrace.LevelTensor {
			t.Errorf("--force, and %v is watched", s.last())
		}
		if err := s.over(); err != nil {
			t.Error(err)
		}
	})
}

// What was reckoned from slow tokens is reckoned again from those of the trace, and what is
// asked for later by them.
func TestLiveTraceReckonsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, 45*time.Millisecond, traceOptions{})
		s.rests(false)
		first := s.says("is expected to cost 0.0 %")
		s.target.do(func() { s.target.decoder.each = 180 * time.Microsecond })
		l := s.until("a cost of the trace's own", func(l *optrace.Live) bool {
			return l.Summary != nil && l.Summary.Observer.From == optrace.ExpectedTrace
		})
		if o := l.Summary.Observer; !o.Over() || o.Graphs < 20 {
			t.Errorf("it costs %+v", o)
		}
		if l = s.until("it again", func(l *optrace.Live) bool { return l.Notice != first.Notice }); !strings.HasPrefix(l.Notice, "Detail tensor is expected to cost ") {
			t.Errorf("%q became %q", first.Notice, l.Notice)
		}
		s.do(func() { s.live.aim(optrace.LevelBarriers) })
		s.state(optrace.LiveAsking)
		if err := s.over(); err != nil {
			t.Error(err)
		}
	})
}

// A screen has what tracing costs at the level that goes on, and not that of most graphs.
func TestLiveTraceCostsWhatIsWatchedNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, 10*time.Millisecond, traceOptions{detail: optrace.LevelSched})
		s.do(func() { s.live.keeper.recording.Reader = 77 })
		s.rests(false)
		first := s.until("a cost of the trace's own", func(l *optrace.Live) bool {
			return l.Summary != nil && l.Summary.Observer.From == optrace.ExpectedTrace && l.Since > 5*time.Second
		})
		if first.Observer != first.Summary.Observer || first.Observer.HitsPerToken == 0 || !first.Observer.Reader.OK {
			t.Errorf("at one level %+v is told, %+v of the figures", first.Observer, first.Summary.Observer)
		}
		for _, d := range []optrace.Detail{optrace.LevelToken, optrace.LevelBarriers} {
			s.do(func() { s.live.aim(d) })
			l := s.until("another level", func(l *optrace.Live) bool { return l.Detail == d })
			if said := fmt.Sprintf("Detail %v is expected to cost %s", d, perCent(l.Observer.Expected)); !strings.HasPrefix(l.Notice, said) {
				t.Errorf("%+v is told of %v: %s", l.Observer, d, l.Notice)
			}
			if l.Observer.Reader.OK {
				t.Errorf("at %v rooftop's CPU of another level is told: %v", d, l.Observer.Reader)
			}
			if o := l.Summary.Observer; o.HitsPerToken != first.Summary.Observer.HitsPerToken || l.Observer.HitsPerToken == o.HitsPerToken {
				t.Errorf("at %v %v hits are told, those of the figures are %v", d, l.Observer.HitsPerToken, o.HitsPerToken)
			}
		}
		if err := s.over(); err != nil {
			t.Error(err)
		}
	})
}

// What no takes is said to be above the limit too where it is, and has no details that are
// seen beside operators alone.
func TestLiveTraceWhereNoLevelFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, 20*time.Microsecond, traceOptions{detail: optrace.LevelSched})
		s.rests(false)
		l := s.state(optrace.LiveAsking)
		if !strings.Contains(l.Question, "n takes token: ") || !strings.Contains(l.Question, "%, the least, which is more too: q detaches.") {
			t.Errorf("it asks %q", l.Question)
		}
		s.do(func() { s.live.answer(false) })
		s.state(optrace.LiveTracing)
		if s.last() != optrace.LevelToken {
			t.Errorf("no, and %v is watched", s.last())
		}
		s.do(func() { s.live.aim(optrace.LevelTensor) })
		if l = s.state(optrace.LiveAsking); !strings.Contains(l.Question, "n stays with token: ") || !strings.Contains(l.Question, "which is more too") {
			t.Errorf("it asks %q", l.Question)
		}
		if err := s.over(); err != nil {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, 50*time.Microsecond, traceOptions{})
		s.target.do(func() { s.target.decoder.mute = true })
		s.rests(false)
		if l := s.state(optrace.LiveAsking); !strings.Contains(l.Question, "n takes graph: ") || !strings.Contains(l.Question, "%, the least, which is more too: q detaches.") {
			t.Errorf("where calls do not tell their tokens it asks %q", l.Question)
		}
		if err := s.over(); err != nil {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, 200*time.Microsecond, traceOptions{})
		s.rests(false)
		if l := s.state(optrace.LiveAsking); strings.Contains(l.Question, "more too") {
			t.Errorf("a level that fits: %q", l.Question)
		}
		if err := s.over(); err != nil {
			t.Error(err)
		}
	})
}

// From calls alone, whose cost was not weighed, operators are weighed when they are
// asked for.
func TestLiveTraceFromCallsToOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, 10*time.Millisecond, traceOptions{detail: optrace.LevelToken})
		s.rests(false)
		s.until("calls", func(l *optrace.Live) bool { return l.State == optrace.LiveTracing && l.Summary != nil })
		s.do(func() { s.live.aim(optrace.LevelOperator) })
		s.state(optrace.LiveWeighing)
		s.until("operators", func(l *optrace.Live) bool { return l.State == optrace.LiveTracing && l.Detail == optrace.LevelOperator })
		if want := []optrace.Detail{optrace.LevelToken, weighed, optrace.LevelOperator}; !slices.Equal(s.target.asked, want) {
			t.Errorf("watched were %v, want %v", s.target.asked, want)
		}
		s.do(func() { s.live.pause(true) })
		s.state(optrace.LivePaused)
		if err := s.over(); err != nil {
			t.Error(err)
		}
	})
}

// Operators of graphs that do not say how many they have are counted before the question
// of what they cost is answered.
func TestLiveTraceCountsOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, time.Millisecond, traceOptions{})
		s.target.do(func() { s.target.decoder.untold = 200 })
		s.rests(false)
		l := s.until("a question", func(l *optrace.Live) bool { return l.Question != "" })
		if want := []optrace.Detail{weighed, weighedOperators}; !slices.Equal(s.target.asked, want) || !strings.Contains(l.Question, "more than --max-overhead 4") {
			t.Errorf("watched were %v, want %v: %s", s.target.asked, want, l.Question)
		}
		if err := s.over(); err != nil {
			t.Error(err)
		}
	})
}

// A level that the kernel refuses is told, and the one before goes on.
func TestLiveTraceOfWhatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, 10*time.Millisecond, traceOptions{})
		s.rests(false)
		s.state(optrace.LiveTracing)
		s.target.do(func() { s.target.refuses[optrace.LevelAll] = errors.New("no room in the kernel") })
		s.do(func() { s.live.aim(optrace.LevelAll) })
		l := s.says("all cannot be watched: no room in the kernel")
		if l.Detail != optrace.LevelTensor || s.last() != optrace.LevelTensor {
			t.Errorf("%v is told, %v watched", l.Detail, s.last())
		}
		s.target.do(func() { s.target.refuses[optrace.LevelToken] = errors.New("no way back") })
		s.do(func() { s.live.pause(true) })
		if l := s.state(optrace.LiveEnded); !strings.Contains(l.Notice, "no way back") {
			t.Errorf("ended: %q", l.Notice)
		}
		if err := s.over(); err == nil || !strings.Contains(err.Error(), "no way back") {
			t.Errorf("the error is %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		o := traceOptions{detail: optrace.LevelTensor}
		s := begin(t, 10*time.Millisecond, o)
		s.target.do(func() { s.target.refuses[optrace.LevelTensor] = errors.New("refused") })
		s.rests(false)
		s.state(optrace.LiveEnded)
		if err := s.over(); err == nil {
			t.Error("no error")
		}
	})
}

func TestLiveTraceThatIsCutOff(t *testing.T) {
	for _, c := range []struct {
		end    error
		notice string
		err    bool
	}{
		{io.EOF, "process 4242 has ended", false},
		{fmt.Errorf("process 4242: %w", ggml.ErrEnded), "process 4242 has ended", false},
		{fmt.Errorf("%w: process 4242 executed sleep", ggml.ErrGone), "another program: process 4242 executed sleep", false},
		{errors.New("the ring is torn"), "tracing process 4242 failed: the ring is torn", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := begin(t, 10*time.Millisecond, traceOptions{})
			s.state(optrace.LiveWaiting)
			s.target.do(func() { s.target.end = c.end })
			if l := s.state(optrace.LiveEnded); !strings.Contains(l.Notice, c.notice) || l.Now > time.Second {
				t.Errorf("%v: %q after %v", c.end, l.Notice, l.Now)
			}
			s.do(func() { s.live.aim(optrace.LevelAll); s.live.pause(true); s.live.answer(true) })
			if err := s.over(); (err != nil) != c.err {
				t.Errorf("%v: the error is %v", c.end, err)
			}
		})
	}
}

// Files are written beside the trace, which goes on, and after its end.
func TestLiveTraceExports(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, 10*time.Millisecond, traceOptions{exportDir: dir})
		s.live.window.most = 100
		s.rests(false)
		s.until("figures", func(l *optrace.Live) bool { return l.Summary != nil && l.Since > 3*time.Second })
		s.do(s.live.export)
		s.says("Exported " + filepath.Join(dir, "rooftop-trace-"))
		s.says("; the last two hold the newest of its ")
		s.target.do(func() { s.target.end = io.EOF })
		s.state(optrace.LiveEnded)
		s.do(s.live.export)
		s.says("Exported ")
		s.do(func() {
			for i, want := range []bool{false, true} { // the target had ended
				text, err := os.ReadFile(s.live.files[i*len(tracedFormats)])
				if said := regexp.MustCompile(`after 3\.\d s of the trace process 4242 has ended`).Match(text); err != nil || said != want {
					t.Errorf("export %d says %v that the target has ended, want %v: %v", i+1, said, want, err)
				}
			}
		})
		s.live.o.exportDir = filepath.Join(dir, "none")
		s.do(s.live.export)
		s.says("Not all was exported: ")
		if err := s.over(); err != nil {
			t.Error(err)
		}
		var told strings.Builder // whatever was exported since
		if err := s.live.told(&world{stdout: io.Discard, stderr: &told, env: variables()}); err != nil || !regexp.MustCompile(`^rooftop: after 3\.\d s of the trace process 4242 has ended\n$`).MatchString(told.String()) {
			t.Errorf("%v: it ends with %q", err, told.String())
		}
		if len(s.live.files) != 2*len(tracedFormats) {
			t.Errorf("exported were %v", s.live.files)
		}
	})
	recordings, _ := filepath.Glob(filepath.Join(dir, "*"+recordingSuffix))
	if len(recordings) != 2 {
		t.Fatalf("recordings %v", recordings)
	}
	for pattern, want := range map[string]string{ // the figures are of all, the others say what they are of
		"*.json": `"left_out": [1-9]\d\d`, "*.trace.json": `the newest of its \d{3,} events alone, not \d{3,} before them: from [2-9]\.\d to 3\.\d s of the trace`,
	} {
		files, _ := filepath.Glob(filepath.Join(dir, "rooftop-trace-"+pattern))
		if text, err := os.ReadFile(files[0]); err != nil || !regexp.MustCompile(want).Match(text) {
			t.Errorf("%s: %v: %.3000s", files[0], err, text)
		}
	}
	r, err := readRecording(recordings[0])
	if i := slices.IndexFunc(r.Gaps, func(g optrace.Gap) bool { return g.What == gapKept }); i < 0 {
		t.Errorf("the recording does not say that it is a part: %v", r.Gaps)
	}
	if err != nil || len(r.Events) != 100 || r.LeftOut < 400 || !slices.IsSortedFunc(r.Events, func(a, b optrace.Event) int { return int(a.At - b.At) }) {
		t.Fatalf("%v: %d events, %d left out", err, len(r.Events), r.LeftOut)
	}
	if s := optrace.Analyze(r); s.Coverage.Graphs < 19 {
		t.Errorf("%d graphs of 100 events", s.Coverage.Graphs)
	}
	for end, want := range map[string]string{".json": "rooftop.trace/v1", ".html": "<html", ".trace.json": "traceEvents"} {
		files, _ := filepath.Glob(filepath.Join(dir, "rooftop-trace-*"+end))
		text, err := os.ReadFile(files[0])
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v: %.200s", end, err, text)
		}
	}
}

// The whole of it but for the kernel and the terminal.
func TestTraceScreen(t *testing.T) {
	hearing(func(int, syscall.Signal) {})() // what it starts in the runtime is not of a bubble
	synctest.Test(t, func(t *testing.T) {
		target := &living{decoder: newDecoder(10*time.Millisecond, 1<<30)}
		g, k := newGlass(80, 24), newKeys()
		var out, errs strings.Builder
		w := &world{stdout: &out, stderr: &errs, env: variables()}
		o := &traceOptions{
			detail: optrace.LevelTensor, maxOverhead: defaultOverhead, exportDir: t.TempDir(), program: onGlass(g, k),
			open: func() (operatorSource, error) { return target, nil },
			env:  w.env, machine: steady("Example CPU 1000", "0-3"), catalog: builtIn(t),
		}
		o.color = "auto"
		ended := make(chan error, 1)
		go func() { ended <- o.watchLive(t.Context(), w) }()
		shows := func(words ...string) {
			t.Helper()
			time.Sleep(time.Second)
			synctest.Wait()
			seen := strings.Join(strings.Fields(g.String()), " ")
			for _, word := range words {
				if !strings.Contains(seen, word) {
					t.Errorf("no %q on the screen:\n%s", word, g)
				}
			}
		}
		time.Sleep(5 * time.Second)
		shows("llama-server", "tracing", "MUL_MAT q8_0", "detail tensor")
		k.press("-")
		shows("detail operator")
		k.press("p")
		shows("PAUSED")
		k.press("p")
		k.press("e")
		shows("Exported ")
		target.do(func() { target.end = io.EOF })
		shows("process 4242 has ended")
		k.press("q")
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if g.alternate || g.hidden {
			t.Error("the terminal was not left as it was")
		}
		for _, want := range []string{"PID 4242", "tok/s", recordingSuffix} {
			if !strings.Contains(strings.ReplaceAll(out.String(), "\u00a0", " "), want) {
				t.Errorf("no %q at the end:\n%s", want, out.String())
			}
		}
		if !strings.Contains(errs.String(), "process 4242 has ended") || !target.decoder.closed {
			t.Errorf("said %q; detached: %v", errs.String(), target.decoder.closed)
		}
		k.unplug()
		time.Sleep(time.Minute) // nothing may stay in the bubble
	})
}

// The screen is for who asked for nothing that comes at the end.
func TestTraceThatEnds(t *testing.T) {
	for _, c := range []struct {
		args []string
		want bool
	}{
		{nil, false},
		{[]string{"--level", "sched", "--force"}, false},
		{[]string{"--duration", "10s"}, true},
		{[]string{"--roof"}, true},
		{[]string{"--measure-overhead"}, true},
		{[]string{"--save", "x"}, true},
		{[]string{"--html", "x"}, true},
	} {
		var o traceOptions
		cmd := &cobra.Command{Use: "trace"}
		o.flags = cmd.Flags()
		g := groupFlags(cmd)
		o.register(g)
		g.done()
		if err := o.flags.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		if got := o.ends(); got != c.want {
			t.Errorf("%v: %v", c.args, got)
		}
		if w := (&world{stdin: strings.NewReader(""), stdout: io.Discard, env: variables()}); o.live(w) {
			t.Errorf("%v: a screen without a terminal", c.args)
		}
	}
}

func TestRecentEvents(t *testing.T) {
	r := recentEvents{most: 4}
	for i := range 11 {
		r.add([]optrace.Event{{N: int64(2 * i)}, {N: int64(2*i + 1)}})
	}
	var got []int64
	for _, e := range r.list() {
		got = append(got, e.N)
	}
	if !slices.Equal(got, []int64{18, 19, 20, 21}) {
		t.Errorf("the newest events are %v", got)
	}
}
