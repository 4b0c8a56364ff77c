package tracing

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
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/screen"
	"github.com/rooftop-dev/rooftop/collect/ggml"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/tally"
	"github.com/rooftop-dev/rooftop/tui/screentest"
)

// living is a target that computes in the test's time, on request.
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

// Next returns one call and the pause after it, or the first events of a new level.
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

// sitting is a live trace of a target, and its user.
type sitting struct {
	t      *testing.T
	target *living
	live   *liveTrace
	leave  context.CancelFunc
	ended  chan error
}

// begin traces a target whose graphs all take the same time.
func begin(t *testing.T, each time.Duration, o Options) *sitting {
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

// builtIn returns the catalog without a user's additions.
func builtIn(t *testing.T) *catalog.Catalog {
	t.Helper()
	c, _, err := cli.UserCatalog("")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Operators of a live trace are compared with a stored machine peak.
func TestLiveTraceByTheRoofThatIsKept(t *testing.T) {
	m := steady("Example CPU 1000", "0-3")
	env, _ := measuredRoof(t, m)
	synctest.Test(t, func(t *testing.T) {
		o := &Options{detail: optrace.LevelTensor, maxOverhead: defaultOverhead, env: env, machine: m, catalog: builtIn(t)}
		target := &living{decoder: newDecoder(10*time.Millisecond, 1<<30)}
		l := newLiveTrace(o, target)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := l.run(ctx); err != nil {
			t.Fatal(err)
		}
		want, _ := o.peakOf(t.Context(), 1)
		if got := l.Latest().Summary.Peak; !want.Known() || got.From != optrace.PeakMeasured || got.BytesPerSecond != want.BytesPerSecond {
			t.Errorf("the roof is %+v, want %+v", got, want)
		}
	})
}

// over ends the trace.
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
	return s.until(text, func(l *optrace.Live) bool { return strings.Contains(plain(l.Notice), text) })
}

func (s *sitting) rests(rests bool) { s.target.do(func() { s.target.rests = rests }) }

// last returns the target's latest level of detail.
func (s *sitting) last() (d optrace.Detail) {
	s.target.do(func() { d = s.target.asked[len(s.target.asked)-1] })
	return d
}

// do presses a key.
func (s *sitting) do(f func()) { s.live.enqueue(f) }

func TestLiveTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, 10*time.Millisecond, Options{})
		first := s.state(optrace.LiveWaiting)
		if s.last() != calibrationDetail || first.Detail != optrace.LevelTensor || first.Summary != nil {
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
		if len(l.Rates) != rateSeconds || len(l.Graph.Threads) != 1 || !strings.Contains(l.Notice, "is expected to cost") || len(l.Notice) > 78 /* a line of 80 */ || l.Summary.Observer.HitsPerToken == 0 {
			t.Errorf("%d rates, %d threads, %q, %+v", len(l.Rates), len(l.Graph.Threads), l.Notice, l.Summary.Observer)
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
		s.do(func() { s.live.request(optrace.LevelOperator) })
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

// While nothing changes, the snapshot stays the same except for the clock.
func TestLiveTraceOfAResultThatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, 10*time.Millisecond, Options{})
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

// A level that costs too much needs confirmation: y traces it anyway, n a cheaper one.
func TestLiveTraceThatCostsTooMuch(t *testing.T) {
	for _, yes := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := begin(t, 50*time.Microsecond, Options{})
			s.rests(false)
			l := s.state(optrace.LiveAsking)
			if !strings.Contains(l.Question, "Detail tensor would cost ") || !strings.Contains(l.Question, "more than --max-overhead 4") || s.last() != calibrationDetail {
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
			// Requesting more asks again, while the previous level continues.
			was := s.last()
			s.do(func() { s.live.request(was | optrace.LevelTensor | optrace.DetailBarrier) })
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
			s.do(func() { s.live.request(optrace.LevelToken) })
			s.until("less", func(l *optrace.Live) bool { return l.Detail == optrace.LevelToken && l.State == optrace.LiveTracing })
			if err := s.over(); err != nil {
				t.Error(err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, 50*time.Microsecond, Options{force: true})
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

// An estimate from slow tokens is replaced by one from the trace's own tokens, which later requests
// use, too.
func TestLiveTraceReckonsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, 45*time.Millisecond, Options{})
		s.rests(false)
		first := s.says("is expected to cost <0.1 %")
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
		s.do(func() { s.live.request(optrace.LevelBarriers) })
		s.state(optrace.LiveAsking)
		if err := s.over(); err != nil {
			t.Error(err)
		}
	})
}

// The screen shows the cost of tracing at the current level, not at that of most graphs.
func TestLiveTraceCostsWhatIsWatchedNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, 10*time.Millisecond, Options{detail: optrace.LevelSched})
		s.do(func() { s.live.collector.recording.Reader = 77 })
		s.rests(false)
		first := s.until("a cost of the trace's own", func(l *optrace.Live) bool {
			return l.Summary != nil && l.Summary.Observer.From == optrace.ExpectedTrace && l.Since > 5*time.Second
		})
		if first.Observer != first.Summary.Observer || first.Observer.HitsPerToken == 0 || !first.Observer.Reader.OK {
			t.Errorf("at one level %+v is told, %+v of the figures", first.Observer, first.Summary.Observer)
		}
		for _, d := range []optrace.Detail{optrace.LevelToken, optrace.LevelBarriers} {
			s.do(func() { s.live.request(d) })
			l := s.until("another level", func(l *optrace.Live) bool { return l.Detail == d })
			if said := fmt.Sprintf("Detail %v is expected to cost %s", d, figure.PercentSign(l.Observer.Expected)); !strings.HasPrefix(l.Notice, said) {
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

// The question says if the answer no exceeds the limit, too; that level has no details that are
// useful only beside operators.
func TestLiveTraceWhereNoLevelFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, 20*time.Microsecond, Options{detail: optrace.LevelSched})
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
		s.do(func() { s.live.request(optrace.LevelTensor) })
		if l = s.state(optrace.LiveAsking); !strings.Contains(l.Question, "n stays with token: ") || !strings.Contains(l.Question, "which is more too") {
			t.Errorf("it asks %q", l.Question)
		}
		if err := s.over(); err != nil {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, 50*time.Microsecond, Options{})
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
		s := begin(t, 200*time.Microsecond, Options{})
		s.rests(false)
		if l := s.state(optrace.LiveAsking); strings.Contains(l.Question, "more too") {
			t.Errorf("a level that fits: %q", l.Question)
		}
		if err := s.over(); err != nil {
			t.Error(err)
		}
	})
}

// Starting with calls only, whose cost is not estimated, operators are estimated on request.
func TestLiveTraceFromCallsToOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, 10*time.Millisecond, Options{detail: optrace.LevelToken})
		s.rests(false)
		s.until("calls", func(l *optrace.Live) bool { return l.State == optrace.LiveTracing && l.Summary != nil })
		s.do(func() { s.live.request(optrace.LevelOperator) })
		s.state(optrace.LiveWeighing)
		s.until("operators", func(l *optrace.Live) bool { return l.State == optrace.LiveTracing && l.Detail == optrace.LevelOperator })
		if want := []optrace.Detail{optrace.LevelToken, calibrationDetail, optrace.LevelOperator}; !slices.Equal(s.target.asked, want) {
			t.Errorf("watched were %v, want %v", s.target.asked, want)
		}
		s.do(func() { s.live.pause(true) })
		s.state(optrace.LivePaused)
		if err := s.over(); err != nil {
			t.Error(err)
		}
	})
}

// Operators of graphs that do not report their number are counted before the question about their
// cost.
func TestLiveTraceCountsOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, time.Millisecond, Options{})
		s.target.do(func() { s.target.decoder.untold = 200 })
		s.rests(false)
		l := s.until("a question", func(l *optrace.Live) bool { return l.Question != "" })
		if want := []optrace.Detail{calibrationDetail, countingDetail}; !slices.Equal(s.target.asked, want) || !strings.Contains(l.Question, "more than --max-overhead 4") {
			t.Errorf("watched were %v, want %v: %s", s.target.asked, want, l.Question)
		}
		if err := s.over(); err != nil {
			t.Error(err)
		}
	})
}

// A level that the kernel refuses is reported, and the previous one continues.
func TestLiveTraceOfWhatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, 10*time.Millisecond, Options{})
		s.rests(false)
		s.state(optrace.LiveTracing)
		s.target.do(func() { s.target.refuses[optrace.LevelAll] = errors.New("no room in the kernel") })
		s.do(func() { s.live.request(optrace.LevelAll) })
		l := s.says("all cannot be traced: no room in the kernel")
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
		o := Options{detail: optrace.LevelTensor}
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
			s := begin(t, 10*time.Millisecond, Options{})
			s.state(optrace.LiveWaiting)
			s.target.do(func() { s.target.end = c.end })
			if l := s.state(optrace.LiveEnded); !strings.Contains(l.Notice, c.notice) || l.Now > time.Second {
				t.Errorf("%v: %q after %v", c.end, l.Notice, l.Now)
			}
			s.do(func() { s.live.request(optrace.LevelAll); s.live.pause(true); s.live.answer(true) })
			if err := s.over(); (err != nil) != c.err {
				t.Errorf("%v: the error is %v", c.end, err)
			}
		})
	}
}

// Files are written during the trace, which continues, and after its end.
func TestLiveTraceExports(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, 10*time.Millisecond, Options{exportDir: dir})
		s.live.window.most = 100
		s.rests(false)
		s.until("figures", func(l *optrace.Live) bool { return l.Summary != nil && l.Since > 3*time.Second })
		s.do(s.live.export)
		s.says("Exported " + filepath.Join(dir, "rooftop-trace-"))
		s.says("; the last two have the newest of its ")
		s.target.do(func() { s.target.end = io.EOF })
		s.state(optrace.LiveEnded)
		s.do(s.live.export)
		s.says("Exported ")
		s.do(func() {
			for i, want := range []bool{false, true} { // the target had ended
				text, err := os.ReadFile(s.live.files[i*len(tracedFormats)])
				if said := regexp.MustCompile(`after 3\.\d+ s of the trace process 4242 has ended`).MatchString(plain(string(text))); err != nil || said != want {
					t.Errorf("export %d says %v that the target has ended, want %v: %v", i+1, said, want, err)
				}
			}
		})
		s.live.o.exportDir = filepath.Join(dir, "none")
		s.do(s.live.export)
		s.says("Some files were not exported: ")
		if err := s.over(); err != nil {
			t.Error(err)
		}
		var told strings.Builder // whatever was exported since
		if err := s.live.printEnd(&cli.World{Stdout: io.Discard, Stderr: &told, Env: variables()}); err != nil || !regexp.MustCompile(`^rooftop: after 3\.\d+ s of the trace process 4242 has ended\n$`).MatchString(told.String()) {
			t.Errorf("%v: it ends with %q", err, told.String())
		}
		if len(s.live.files) != 2*len(tracedFormats) {
			t.Errorf("exported were %v", s.live.files)
		}
	})
	recordings, _ := filepath.Glob(filepath.Join(dir, "*"+Suffix))
	if len(recordings) != 2 {
		t.Fatalf("recordings %v", recordings)
	}
	for pattern, want := range map[string]string{ // the figures are of all, the others say what they are of
		"*.json": `"left_out": [1-9]\d\d`, "*.trace.json": `the newest of its \d{3,} events alone, not \d{3,} before them: from [2-9]\.\d to 3\.\d+ s of the trace`,
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
	if s := tally.Analyze(r); s.Coverage.Graphs < 19 {
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

// The whole program except the kernel and the terminal.
func TestTraceScreen(t *testing.T) {
	cli.OnSignals(t.Context(), func(int, syscall.Signal) {})() // what it starts in the runtime is not of a bubble
	synctest.Test(t, func(t *testing.T) {
		target := &living{decoder: newDecoder(10*time.Millisecond, 1<<30)}
		g, k := screentest.NewGlass(80, 24), screentest.NewKeys()
		var out, errs strings.Builder
		w := &cli.World{Stdout: &out, Stderr: &errs, Env: variables()}
		o := &Options{
			detail: optrace.LevelTensor, maxOverhead: defaultOverhead, exportDir: t.TempDir(), screen: screen.Options{Theme: "auto", Refresh: 250 * time.Millisecond, Program: screentest.Options(g, k)},
			open: func() (Source, error) { return target, nil },
			env:  w.Env, machine: steady("Example CPU 1000", "0-3"), catalog: builtIn(t),
		}
		o.Color = "auto"
		ended := make(chan error, 1)
		go func() { ended <- o.watchScreen(t.Context(), w) }()
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
		k.Press("-")
		shows("detail operator")
		k.Press("p")
		shows("PAUSED")
		k.Press("p")
		k.Press("e")
		shows("Exported ")
		target.do(func() { target.end = io.EOF })
		shows("process 4242 has ended")
		k.Press("q")
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if g.TakenOver() {
			t.Error("the terminal was not left as it was")
		}
		for _, want := range []string{"PID 4242", "tok/s", Suffix} {
			if !strings.Contains(strings.ReplaceAll(out.String(), "\u00a0", " "), want) {
				t.Errorf("no %q at the end:\n%s", want, out.String())
			}
		}
		if !strings.Contains(errs.String(), "process 4242 has ended") || !target.decoder.closed {
			t.Errorf("said %q; detached: %v", errs.String(), target.decoder.closed)
		}
		k.Unplug()
		time.Sleep(time.Minute) // nothing may stay in the bubble
	})
}

// The screen is used only if no output is written at the end.
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
		var o Options
		cmd := &cobra.Command{Use: "trace"}
		o.flags = cmd.Flags()
		g := cli.GroupFlags(cmd)
		o.Register(g)
		g.Done()
		if err := o.flags.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		if got := o.ends(); got != c.want {
			t.Errorf("%v: %v", c.args, got)
		}
		if w := (&cli.World{Stdin: strings.NewReader(""), Stdout: io.Discard, Env: variables()}); o.live(w) {
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
