package trace

import (
	"context"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rooftop-dev/rooftop/tui/screentest"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"github.com/rooftop-dev/rooftop/engine/longtest"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/page/trace"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// fakeTrace records the requests of keys.
type fakeTrace struct {
	mu      sync.Mutex
	l       *optrace.Live
	details []optrace.Detail
	pauses  []bool
	answers []bool
	exports int
}

func (f *fakeTrace) Latest() *optrace.Live {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.l
}

func (f *fakeTrace) set(l *optrace.Live) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.l = l
}

func (f *fakeTrace) controls() Controls {
	return Controls{
		SetDetail: func(d optrace.Detail) { f.details = append(f.details, d) },
		Pause:     func(paused bool) { f.pauses = append(f.pauses, paused) },
		Answer:    func(yes bool) { f.answers = append(f.answers, yes) },
		Export:    func() { f.exports++ },
	}
}

// testTrace returns a screen of 80 by 24 that has drawn its first frame.
func testTrace(t testing.TB, name string, o frame.Options) (*Screen, *fakeTrace) {
	f := &fakeTrace{l: traceNamed(t, name).l}
	m := New(f, f.controls(), o)
	m.Init()
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	m.View()
	return m, f
}

func pressTrace(m *Screen, names string) tea.Cmd {
	var cmd tea.Cmd
	for name := range strings.FieldsSeq(names) {
		_, cmd = m.Update(screentest.KeyPress(name))
		m.View()
	}
	return cmd
}

// TestTraceKeys presses keys and checks the requests to the trace.
func TestTraceKeys(t *testing.T) {
	withBarriers := optrace.LevelTensor | optrace.DetailBarrier
	for _, c := range []struct {
		name, trace, keys string
		details           []optrace.Detail
		pauses, answers   []bool
		exports           int
		quit              bool
		says              string // part of the notice
	}{
		{name: "more", trace: "dense", keys: "+", details: []optrace.Detail{withBarriers}, says: "Detail: barriers, waits of threads too."},
		{name: "more, on any keyboard", trace: "dense", keys: "=", details: []optrace.Detail{withBarriers}},
		{name: "more before it came into effect", trace: "dense", keys: "+ +", details: []optrace.Detail{withBarriers, withBarriers | optrace.DetailSched}},
		{name: "less", trace: "dense", keys: "-", details: []optrace.Detail{optrace.LevelOperator}},
		{name: "less and more", trace: "dense", keys: "- +", details: []optrace.Detail{optrace.LevelOperator, optrace.LevelTensor}},
		{name: "the most", trace: "dense", keys: "+ + + +", details: []optrace.Detail{withBarriers, withBarriers | optrace.DetailSched, optrace.LevelAll}, says: "all is the highest"},
		{name: "more than the level sched keeps it", trace: "sched", keys: "+", details: []optrace.Detail{withBarriers | optrace.DetailSched}, says: "Detail: barriers+sched, waits of threads too."},
		{name: "more than operators with sched keeps it", trace: "operators-sched", keys: "+ +", details: []optrace.Detail{optrace.LevelSched, withBarriers | optrace.DetailSched}},
		{name: "more and less than the level sched come back to it", trace: "sched", keys: "+ -", details: []optrace.Detail{withBarriers | optrace.DetailSched, optrace.LevelSched}, says: "Detail: sched, as before."},
		{name: "two steps and back", trace: "sched", keys: "+ + - - -", details: []optrace.Detail{withBarriers | optrace.DetailSched, optrace.LevelAll, withBarriers | optrace.DetailSched, optrace.LevelSched, optrace.LevelTensor}},
		{name: "less and more, with scheduling", trace: "sched", keys: "- - + +", details: []optrace.Detail{optrace.LevelTensor, optrace.LevelOperator, optrace.LevelTensor, optrace.LevelSched}},
		{name: "less than the level sched", trace: "sched", keys: "-", details: []optrace.Detail{optrace.LevelTensor}, says: "Detail: tensor, without scheduling."},
		{name: "the least", trace: "graphs", keys: "- -", details: []optrace.Detail{optrace.LevelToken}, says: "token is the lowest"},
		{name: "pause", trace: "dense", keys: "p", pauses: []bool{true}},
		{name: "go on", trace: "paused", keys: "p", pauses: []bool{false}},
		{name: "yes", trace: "asking", keys: "y", answers: []bool{true}},
		{name: "no", trace: "asking-bare", keys: "n", answers: []bool{false}},
		{name: "yes to nothing", trace: "dense", keys: "y", says: "y: there is no question open."},
		{name: "enter answers nothing", trace: "asking", keys: "enter"},
		{name: "a question that came behind a frozen display", trace: "dense", keys: "space ASK y", says: "not on the frozen display"},
		{name: "and after it goes on", trace: "dense", keys: "space ASK space y", answers: []bool{true}},
		{name: "export", trace: "dense", keys: "e", exports: 1, says: "Writing"},
		{name: "export of what has ended", trace: "ended", keys: "e", exports: 1, says: "Writing"},
		{name: "no more of what has ended", trace: "ended", keys: "+", says: "+: the trace has ended."},
		{name: "no pause of what has ended", trace: "ended", keys: "p", says: "the trace has ended."},
		{name: "before it began", trace: "nothing", keys: "+", says: "not begun"},
		{name: "quit", trace: "asking", keys: "q", quit: true},
		{name: "quit before it began", trace: "nothing", keys: "q", quit: true},
		{name: "interrupt while typing", trace: "dense", keys: "/ x ctrl+c", quit: true},
		{name: "letters while typing are text", trace: "asking", keys: "/ y n p e q"},
		{name: "q closes the help", trace: "dense", keys: "? q"},
		{name: "one phase alone", trace: "empty", keys: "f", says: "no other phase"},
	} {
		t.Run(c.name, func(t *testing.T) {
			trace, detail := c.trace, optrace.Detail(0)
			switch trace {
			case "sched":
				trace, detail = "dense", optrace.LevelSched
			case "operators-sched":
				trace, detail = "dense", optrace.LevelOperator|optrace.DetailSched
			}
			m, f := testTrace(t, trace, frame.Options{})
			if detail != 0 {
				l := *f.l
				l.Detail = detail
				f.set(&l)
				m.Update(frame.Tick{Beat: m.Beat})
			}
			var cmd tea.Cmd
			for key := range strings.FieldsSeq(c.keys) {
				if key == "ASK" {
					f.set(traceNamed(t, "asking").l)
					m.Update(frame.Tick{Beat: m.Beat})
					continue
				}
				cmd = pressTrace(m, key)
			}
			if !slices.Equal(f.details, c.details) || !slices.Equal(f.pauses, c.pauses) || !slices.Equal(f.answers, c.answers) || f.exports != c.exports {
				t.Errorf("told %v, %v, %v, %d exports", f.details, f.pauses, f.answers, f.exports)
			}
			if screentest.IsQuit(cmd) != c.quit {
				t.Errorf("quits %v, want %v", screentest.IsQuit(cmd), c.quit)
			}
			if !strings.Contains(m.Settings.Notice.Text, c.says) {
				t.Errorf("says %q, want %q in it", m.Settings.Notice.Text, c.says)
			}
		})
	}
}

// TestStepsOfDetail steps any set of details up and down: a step up keeps the previous details, a
// step down adds none, and both end.
func TestStepsOfDetail(t *testing.T) {
	for d := range optrace.LevelAll + 1 {
		up, _ := moreDetail(d)
		if up&d != d || up == d && d != optrace.LevelAll {
			t.Fatalf("more than %v is %v", d, up)
		}
		down, _ := lessDetail(d)
		if down&^d != 0 || d != 0 && down == 0 {
			t.Fatalf("less than %v is %v", d, down)
		}
		at, steps := d, 0
		for to, _ := lessDetail(at); to != at; to, _ = lessDetail(at) {
			at, steps = to, steps+1
		}
		if most := len(detailSteps()); steps >= most {
			t.Fatalf("%d steps down from %v, want fewer than %d", steps, d, most)
		}
	}
}

// TestTraceWithoutControls presses every key without controls.
func TestTraceWithoutControls(t *testing.T) {
	m := New(&fakeTrace{l: traceNamed(t, "asking").l}, Controls{}, frame.Options{})
	m.Init()
	for _, key := range strings.Fields("+ - p y n e") {
		pressTrace(m, key)
		if !strings.Contains(m.Settings.Notice.Text, key+": this trace cannot do that.") {
			t.Errorf("%s: says %q", key, m.Settings.Notice.Text)
		}
	}
}

// TestTraceSorts checks the first operator of the table.
func TestTraceSorts(t *testing.T) {
	first := func(m *Screen) string {
		lines := strings.Split(ansi.Strip(m.Text), "\n")
		for i, l := range lines {
			if strings.HasPrefix(l, "   operator ") {
				name, _, _ := strings.Cut(lines[i+1], "#")
				return strings.TrimSpace(name)
			}
		}
		return ""
	}
	for _, c := range []struct{ keys, want string }{
		{"2", "MUL_MAT q4_0"},
		{"s", "MUL_MAT q4_0"}, // from another view it only shows the table
		{"2 S", "GET_ROWS q4_0"},
		{"2 s", "MUL_MAT q6_k"},        // the longest each
		{"2 s s", "MUL_MAT q4_0"},      // the most
		{"2 s s S", "MUL_MAT q6_k"},    // the fewest
		{"2 s s s S", "GET_ROWS q4_0"}, // what has no figure comes last, whichever way
		{"2 b", "ffn_up"},
		{"2 f", "MUL_MAT q4_0"},
		{"2 / f l a s h enter", "FLASH_ATTN_EXT"},
		{"2 / c o m p u t e enter f", "MUL_MAT q4_0"},
	} {
		m, _ := testTrace(t, "dense", frame.Options{ASCII: true})
		pressTrace(m, c.keys)
		if got := first(m); got != c.want {
			t.Errorf("%s: %q first, want %q\n%s", c.keys, got, c.want, ansi.Strip(m.Text))
		}
	}
}

// TestTraceFreezes freezes the display while the trace continues.
func TestTraceFreezes(t *testing.T) {
	m, f := testTrace(t, "dense", frame.Options{})
	pressTrace(m, "space")
	before := m.View().Content
	f.set(traceNamed(t, "moe").l)
	m.Update(frame.Tick{Beat: m.Beat})
	if m.View().Content != before {
		t.Error("the display went on")
	}
	if text := ansi.Strip(before); !strings.Contains(text, "FROZEN") {
		t.Errorf("not said:\n%s", text)
	}
	pressTrace(m, "esc")
	if m.shown != f.l {
		t.Error("the display does not go on")
	}
}

// TestTraceDrawsOnChange counts frames: nothing is drawn when nothing changed.
func TestTraceDrawsOnChange(t *testing.T) {
	m, f := testTrace(t, "dense", frame.Options{})
	at := *f.l
	for _, c := range []struct {
		name string
		by   func(l *optrace.Live)
		want int
	}{
		{"the same again", func(*optrace.Live) {}, 0},
		{"a quarter of a second", func(l *optrace.Live) { l.Now += 250 * time.Millisecond; l.Since += 250 * time.Millisecond }, 0},
		{"a second", func(l *optrace.Live) { l.Now += time.Second }, 1},
		{"other figures", func(l *optrace.Live) { s := *l.Summary; l.Summary = &s }, 1},
		{"another graph", func(l *optrace.Live) { l.Graph.Index++ }, 1},
		{"another state", func(l *optrace.Live) { l.State = optrace.LivePaused }, 1},
		{"a notice", func(l *optrace.Live) { l.Notice = "written to trace.json" }, 1},
	} {
		next := at
		c.by(&next)
		at = next
		f.set(&next)
		before := m.Drawn
		m.Update(frame.Tick{Beat: m.Beat})
		m.View()
		m.View()
		if got := m.Drawn - before; got != c.want {
			t.Errorf("%s: %d frames, want %d", c.name, got, c.want)
		}
	}
	if m.Settings.Notice.Text != "written to trace.json" {
		t.Errorf("says %q", m.Settings.Notice.Text)
	}
}

// TestTraceRefreshIsBounded requests more frames than a trace may cost.
func TestTraceRefreshIsBounded(t *testing.T) {
	for _, c := range []struct{ asked, want time.Duration }{{0, 250 * time.Millisecond}, {50 * time.Millisecond, 250 * time.Millisecond}, {time.Second, time.Second}} {
		if got := New(&fakeTrace{}, Controls{}, frame.Options{Refresh: c.asked}).Refresh(); got != c.want {
			t.Errorf("%v: %v, want %v", c.asked, got, c.want)
		}
	}
}

// TestTraceKeysAreOneEach finds keys that two bindings share, and bindings without a place in the
// help or without an action.
func TestTraceKeysAreOneEach(t *testing.T) {
	k := boundKeys()
	owner := map[string]string{}
	bound := 0
	for _, g := range k.groups() {
		for _, b := range g.Keys {
			bound++
			for _, name := range b.Keys() {
				if other, ok := owner[name]; ok {
					t.Errorf("%s is %q and %q", name, other, b.Help().Desc)
				}
				owner[name] = b.Help().Desc
			}
		}
	}
	m, _ := testTrace(t, "dense", frame.Options{})
	if got := len(m.actions()) + 2; got != bound { // two are looked at before
		t.Errorf("%d keys do something, the help has %d", got, bound)
	}
}

// TestTraceHoldsItsFrame draws every state in every view at various sizes: no line too wide, no
// frame too tall, never empty.
func TestTraceHoldsItsFrame(t *testing.T) {
	for _, f := range traceFixtures() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for _, w := range []int{20, 36, 59, 60, 61, 79, 80, 99, 100, 101, 120, 170, 171, 240} {
				for _, h := range []int{6, 10, 15, 16, 17, 24, 30, 39, 40, 60, 80} {
					if !longtest.Tests && (w+h)%3 != 0 {
						continue
					}
					for v := range numViews {
						if (w < frame.LeastWidth || h < frame.LeastHeight) && v > 0 {
							break // the summary is the same for all
						}
						u := &frame.Settings{Glyphs: cell.Unicode(), View: v, Over: map[bool]frame.Overlay{true: frame.OverlayHelp}[h == 17]}
						if (w+h)%2 == 0 {
							u.Glyphs = cell.ASCII()
						}
						u.Scroll[v] = 7 * (h % 3)
						c, e := drawScreen(f.l, u, &choices{order: w % trace.SortKeys, names: h%2 == 0}, w, h)
						if err := screentest.CheckFrame(c.Plain(), w, h); err != nil {
							t.Fatalf("%s at %dx%d: %v\n%s", traceFile(v), w, h, err, c.Plain())
						}
						if e.Lines < 0 || e.First > max(0, e.Lines-e.Page) {
							t.Fatalf("%s at %dx%d: %+v", traceFile(v), w, h, e)
						}
					}
				}
			}
		})
	}
}

// TestHostileTraces draws traces that are inconsistent, partly empty, and full of invalid numbers.
// There must always be a frame.
func TestHostileTraces(t *testing.T) {
	all := traceFixtures()
	seeds := 400
	if !longtest.Tests {
		seeds = 80
	}
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 8))
		f := all[r.IntN(len(all))]
		if f.l == nil {
			continue
		}
		sp := &screentest.Spoiler{Rand: r, Odds: screentest.Pick(r, 3, 10, 40, 200)}
		l := sp.Spoil(reflect.ValueOf(*f.l)).Interface().(optrace.Live)
		l.State = optrace.LiveState(r.IntN(int(optrace.LiveEnded) + 2))
		l.Detail = optrace.Detail(r.Uint32())
		w, h := screentest.Pick(r, 20, 36, 60, 80, 101, 120, 171, 200, 250), screentest.Pick(r, 6, 16, 24, 31, 45, 60)
		for v := range numViews {
			u := &frame.Settings{Glyphs: screentest.Pick(r, cell.Unicode(), cell.ASCII()), View: v, Filter: screentest.Pick(r, "", "mul")}
			u.Scroll[v] = screentest.Pick(r, 0, 3, frame.ToEnd)
			set := &choices{order: r.IntN(trace.SortKeys), least: r.IntN(2) == 0, names: r.IntN(2) == 0, phase: screentest.Pick(r, "", "prefill")}
			func() {
				defer func() {
					if p := recover(); p != nil {
						t.Fatalf("seed %d, %s, view %s at %dx%d: %v", seed, f.name, traceFile(v), w, h, p)
					}
				}()
				c, _ := drawScreen(&l, u, set, w, h)
				if err := screentest.CheckFrame(c.Plain(), w, h); err != nil {
					t.Fatalf("seed %d, %s, view %s at %dx%d: %v\n%s", seed, f.name, traceFile(v), w, h, err, c.Plain())
				}
			}()
		}
	}
}

// TestTraceProgram runs the whole program: it shows the trace, asks, and restores the terminal; two
// minutes of tracing cost few frames and bytes.
func TestTraceProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out screentest.Output
		var p *tea.Program
		base := traceNamed(t, "dense").l
		f := &fakeTrace{l: base}
		m := New(f, f.controls(), frame.Options{Theme: "dark", Program: []tea.ProgramOption{
			tea.WithInput(nil), tea.WithOutput(&out), tea.WithWindowSize(80, 24), tea.WithEnvironment([]string{"TERM=xterm-256color"}),
			func(program *tea.Program) { p = program },
		}})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- m.Run(ctx) }()
		time.Sleep(time.Second)
		synctest.Wait() // the program rests: what it has drawn may be read
		if first := ansi.Strip(out.Take()); !strings.Contains(first, "[1 Now]") || !strings.Contains(first, "Compute with 2 threads") {
			t.Errorf("the first second shows %q", first)
		}
		before := m.Drawn
		const span = 120
		for i := range span * 10 { // news ten times a second
			l := *base
			l.Now += time.Duration(i) * 100 * time.Millisecond
			l.Since, l.Graph.Index = l.Now, i
			f.set(&l)
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if frames := m.Drawn - before; frames > span*4+1 {
			t.Errorf("%d frames in %d s, want at most 4 a second", frames, span)
		}
		if perSecond := len(out.Take()) / span; perSecond > 1<<10 {
			t.Errorf("%d bytes/s, want at most 1 KiB/s", perSecond)
		}
		p.Send(screentest.KeyPress("q"))
		if err := <-done; err != nil {
			t.Error(err)
		}
		if !strings.Contains(out.Take(), ansi.ResetModeAltScreenSaveCursor) {
			t.Error("the alternate screen stays")
		}
		time.Sleep(time.Second)
	})
}

// BenchmarkTraceFrame draws and paints a view, as View does after each change.
func BenchmarkTraceFrame(b *testing.B) {
	th := frame.ThemeOf("dark", colorprofile.TrueColor)
	for _, c := range []struct {
		trace string
		view  frame.ViewID
		w, h  int
	}{
		{"dense", viewNow, 80, 24}, {"dense", viewNow, 200, 60}, {"dense", viewOperators, 80, 24}, {"deep", viewLayers, 80, 24},
		{"threads", viewThreads, 80, 24}, {"threads", viewThreads, 200, 60}, {"experts", viewExperts, 200, 60}, {"dense", viewDetails, 80, 24},
	} {
		f := traceNamed(b, c.trace)
		b.Run(c.trace+"-"+traceFile(c.view)+"-"+map[bool]string{true: "200x60", false: "80x24"}[c.w > 80], func(b *testing.B) {
			u := &frame.Settings{Glyphs: cell.Unicode(), View: c.view}
			b.ReportAllocs()
			for b.Loop() {
				canvas, _ := drawScreen(f.l, u, &choices{}, c.w, c.h)
				canvas.Render(th.Paint)
			}
		})
	}
}

// TestTraceOfARecording checks that keys which would change a trace say that it is a recording.
func TestTraceOfARecording(t *testing.T) {
	m, feed := testTrace(t, "dense", frame.Options{})
	l := *feed.l
	l.State = optrace.LiveRecorded
	feed.l = &l
	m.Pull()
	for _, key := range []string{"+", "-", "p", "e", "y"} {
		pressTrace(m, key)
		if !strings.Contains(m.Settings.Notice.Text, "This is a recording") {
			t.Errorf("%s: says %q", key, m.Settings.Notice.Text)
		}
	}
	if got := ansi.Strip(m.Text); !strings.Contains(got, "recording") || strings.Contains(got, "export") {
		t.Errorf("the frame:\n%s", got)
	}
}

// TestTraceFilters types a filter in each view: nothing but what matches is left of lists.
func TestTraceFilters(t *testing.T) {
	m, _ := testTrace(t, "dense", frame.Options{})
	for _, view := range []string{"2", "3", "4", "6"} {
		pressTrace(m, view+" / z z z enter")
		if got := ansi.Strip(m.Text); !strings.Contains(got, `match "zzz"`) {
			t.Errorf("view %s is not filtered:\n%s", view, got)
		}
		pressTrace(m, "esc")
	}
}
