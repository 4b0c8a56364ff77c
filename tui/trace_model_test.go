package tui

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

	"charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// fakeTrace is a trace that keys talk to.
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

func (f *fakeTrace) controls() TraceControls {
	return TraceControls{
		SetDetail: func(d optrace.Detail) { f.details = append(f.details, d) },
		Pause:     func(paused bool) { f.pauses = append(f.pauses, paused) },
		Answer:    func(yes bool) { f.answers = append(f.answers, yes) },
		Export:    func() { f.exports++ },
	}
}

// testTrace is a screen of 80 by 24 that has drawn its first frame.
func testTrace(t testing.TB, name string, o Options) (*Trace, *fakeTrace) {
	f := &fakeTrace{l: traceNamed(t, name).l}
	m := NewTrace(f, f.controls(), o)
	m.Init()
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	m.View()
	return m, f
}

func pressTrace(m *Trace, names string) tea.Cmd {
	var cmd tea.Cmd
	for name := range strings.FieldsSeq(names) {
		_, cmd = m.Update(keyPress(name))
		m.View()
	}
	return cmd
}

// TestTraceKeys presses keys and looks at what the trace was told.
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
			m, f := testTrace(t, trace, Options{})
			if detail != 0 {
				l := *f.l
				l.Detail = detail
				f.set(&l)
				m.Update(tick{m.beat})
			}
			var cmd tea.Cmd
			for key := range strings.FieldsSeq(c.keys) {
				if key == "ASK" {
					f.set(traceNamed(t, "asking").l)
					m.Update(tick{m.beat})
					continue
				}
				cmd = pressTrace(m, key)
			}
			if !slices.Equal(f.details, c.details) || !slices.Equal(f.pauses, c.pauses) || !slices.Equal(f.answers, c.answers) || f.exports != c.exports {
				t.Errorf("told %v, %v, %v, %d exports", f.details, f.pauses, f.answers, f.exports)
			}
			if isQuit(cmd) != c.quit {
				t.Errorf("quits %v, want %v", isQuit(cmd), c.quit)
			}
			if !strings.Contains(m.look.notice.text, c.says) {
				t.Errorf("says %q, want %q in it", m.look.notice.text, c.says)
			}
		})
	}
}

// TestStepsOfDetail takes any set of details up and down: a step up keeps what was there, a
// step down adds nothing, and either ends.
func TestStepsOfDetail(t *testing.T) {
	for d := range optrace.LevelAll + 1 {
		up, _ := more(d)
		if up&d != d || up == d && d != optrace.LevelAll {
			t.Fatalf("more than %v is %v", d, up)
		}
		down, _ := less(d)
		if down&^d != 0 || d != 0 && down == 0 {
			t.Fatalf("less than %v is %v", d, down)
		}
		at, steps := d, 0
		for to, _ := less(at); to != at; to, _ = less(at) {
			at, steps = to, steps+1
		}
		if most := len(rungs()); steps >= most {
			t.Fatalf("%d steps down from %v, want fewer than %d", steps, d, most)
		}
	}
}

// TestTraceWithoutControls presses every key where the trace takes none.
func TestTraceWithoutControls(t *testing.T) {
	m := NewTrace(&fakeTrace{l: traceNamed(t, "asking").l}, TraceControls{}, Options{})
	m.Init()
	for _, key := range strings.Fields("+ - p y n e") {
		pressTrace(m, key)
		if !strings.Contains(m.look.notice.text, key+": this trace cannot do that.") {
			t.Errorf("%s: says %q", key, m.look.notice.text)
		}
	}
}

// TestTraceSorts looks at the first operator of the table.
func TestTraceSorts(t *testing.T) {
	first := func(m *Trace) string {
		lines := strings.Split(ansi.Strip(m.text), "\n")
		for i, l := range lines {
			if strings.HasPrefix(l, " operator ") {
				return strings.TrimSpace(lines[i+1][:15])
			}
		}
		return ""
	}
	for _, c := range []struct{ keys, want string }{
		{"2", "MUL_MAT q4_0"},
		{"s", "MUL_MAT q4_0"}, // from another view it only shows the table
		{"2 S", "GET_ROWS q4_0"},
		{"2 s", "MUL_MAT q4_0"},
		{"2 s S", "MUL_MAT q6_k"},      // the fewest
		{"2 s s", "MUL_MAT q6_k"},      // the longest each
		{"2 s s s S", "GET_ROWS q4_0"}, // what has no figure comes last, whichever way
		{"2 b", "ffn_up MUL_MAT"},
		{"2 f", "MUL_MAT q4_0"},
		{"/ f l a s h enter", "FLASH_ATTN_EXT"},
		{"/ c o m p u t e enter f", "MUL_MAT q4_0"},
	} {
		m, _ := testTrace(t, "dense", Options{ASCII: true})
		pressTrace(m, c.keys)
		if got := first(m); got != c.want {
			t.Errorf("%s: %q first, want %q\n%s", c.keys, got, c.want, ansi.Strip(m.text))
		}
	}
}

// TestTraceFreezes holds the display while the trace goes on.
func TestTraceFreezes(t *testing.T) {
	m, f := testTrace(t, "dense", Options{})
	pressTrace(m, "space")
	before := m.View().Content
	f.set(traceNamed(t, "moe").l)
	m.Update(tick{m.beat})
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
	m, f := testTrace(t, "dense", Options{})
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
		before := m.drawn
		m.Update(tick{m.beat})
		m.View()
		m.View()
		if got := m.drawn - before; got != c.want {
			t.Errorf("%s: %d frames, want %d", c.name, got, c.want)
		}
	}
	if m.look.notice.text != "written to trace.json" {
		t.Errorf("says %q", m.look.notice.text)
	}
}

// TestTraceRefreshIsBounded asks for more frames than a trace may cost.
func TestTraceRefreshIsBounded(t *testing.T) {
	for _, c := range []struct{ asked, want time.Duration }{{0, 250 * time.Millisecond}, {50 * time.Millisecond, 250 * time.Millisecond}, {time.Second, time.Second}} {
		if got := NewTrace(&fakeTrace{}, TraceControls{}, Options{Refresh: c.asked}).refresh(); got != c.want {
			t.Errorf("%v: %v, want %v", c.asked, got, c.want)
		}
	}
}

// TestTraceKeysAreOneEach finds a key that two bindings share, and one without a
// place in the help or without an action.
func TestTraceKeysAreOneEach(t *testing.T) {
	k := tracingKeys()
	owner := map[string]string{}
	bound := 0
	for _, g := range k.groups() {
		for _, b := range g.keys {
			bound++
			for _, name := range b.Keys() {
				if other, ok := owner[name]; ok {
					t.Errorf("%s is %q and %q", name, other, b.Help().Desc)
				}
				owner[name] = b.Help().Desc
			}
		}
	}
	m, _ := testTrace(t, "dense", Options{})
	if got := len(m.actions()) + 2; got != bound { // two are looked at before
		t.Errorf("%d keys do something, the help has %d", got, bound)
	}
}

// TestTraceHoldsItsFrame draws every state in every view at all kinds of sizes: no
// line too wide, no frame too tall, never empty.
func TestTraceHoldsItsFrame(t *testing.T) {
	for _, f := range traceFixtures() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for _, w := range []int{20, 36, 59, 60, 61, 79, 80, 99, 100, 101, 120, 170, 171, 240} {
				for _, h := range []int{6, 10, 15, 16, 17, 24, 30, 39, 40, 60, 80} {
					for v := range numTraceViews {
						if (w < leastWidth || h < leastHeight) && v > 0 {
							break // the summary is the same for all
						}
						u := &look{glyphs: cell.Unicode(), view: v, over: map[bool]overlay{true: overlayHelp}[h == 17]}
						if (w+h)%2 == 0 {
							u.glyphs = cell.ASCII()
						}
						u.scroll[v] = 7 * (h % 3)
						c, e := traceFrame(f.l, u, &traceSet{order: order(w % int(numOrders)), names: h%2 == 0}, w, h)
						if err := holds(c.Plain(), w, h); err != nil {
							t.Fatalf("%s at %dx%d: %v\n%s", traceFile(v), w, h, err, c.Plain())
						}
						if e.lines < 0 || e.first > max(0, e.lines-e.page) {
							t.Fatalf("%s at %dx%d: %+v", traceFile(v), w, h, e)
						}
					}
				}
			}
		})
	}
}

// TestHostileTraces draws traces that are torn, empty in places, and full of numbers
// that are none: whatever comes, there is a frame.
func TestHostileTraces(t *testing.T) {
	all := traceFixtures()
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 8))
		f := all[r.IntN(len(all))]
		if f.l == nil {
			continue
		}
		sp := &spoiler{r: r, odds: pick(r, 3, 10, 40, 200)}
		l := sp.spoil(reflect.ValueOf(*f.l)).Interface().(optrace.Live)
		l.State = optrace.LiveState(r.IntN(int(optrace.LiveEnded) + 2))
		l.Detail = optrace.Detail(r.Uint32())
		w, h := pick(r, 20, 36, 60, 80, 101, 120, 171, 200, 250), pick(r, 6, 16, 24, 31, 45, 60)
		for v := range numTraceViews {
			u := &look{glyphs: pick(r, cell.Unicode(), cell.ASCII()), view: v, filter: pick(r, "", "mul")}
			u.scroll[v] = pick(r, 0, 3, toEnd)
			set := &traceSet{order: order(r.IntN(int(numOrders))), least: r.IntN(2) == 0, names: r.IntN(2) == 0, phase: pick(r, "", "prefill")}
			func() {
				defer func() {
					if p := recover(); p != nil {
						t.Fatalf("seed %d, %s, view %s at %dx%d: %v", seed, f.name, traceFile(v), w, h, p)
					}
				}()
				c, _ := traceFrame(&l, u, set, w, h)
				if err := holds(c.Plain(), w, h); err != nil {
					t.Fatalf("seed %d, %s, view %s at %dx%d: %v\n%s", seed, f.name, traceFile(v), w, h, err, c.Plain())
				}
			}()
		}
	}
}

// TestTraceProgram runs the whole program: it shows, asks, and leaves the terminal as
// it was; two minutes of tracing cost few frames and bytes.
func TestTraceProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out terminal
		var p *tea.Program
		base := traceNamed(t, "dense").l
		f := &fakeTrace{l: base}
		m := NewTrace(f, f.controls(), Options{Theme: "dark", Program: []tea.ProgramOption{
			tea.WithInput(nil), tea.WithOutput(&out), tea.WithWindowSize(80, 24), tea.WithEnvironment([]string{"TERM=xterm-256color"}),
			func(program *tea.Program) { p = program },
		}})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- m.Run(ctx) }()
		time.Sleep(time.Second)
		synctest.Wait() // the program rests: what it has drawn may be read
		if first := ansi.Strip(out.take()); !strings.Contains(first, "[1 Now]") || !strings.Contains(first, "Compute with 2 threads") {
			t.Errorf("the first second shows %q", first)
		}
		before := m.drawn
		const span = 120
		for i := range span * 10 { // news ten times a second
			l := *base
			l.Now += time.Duration(i) * 100 * time.Millisecond
			l.Since, l.Graph.Index = l.Now, i
			f.set(&l)
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if frames := m.drawn - before; frames > span*4+1 {
			t.Errorf("%d frames in %d s, want at most 4 a second", frames, span)
		}
		if perSecond := len(out.take()) / span; perSecond > 1<<10 {
			t.Errorf("%d bytes/s, want at most 1 KiB/s", perSecond)
		}
		p.Send(keyPress("q"))
		if err := <-done; err != nil {
			t.Error(err)
		}
		if !strings.Contains(out.take(), ansi.ResetModeAltScreenSaveCursor) {
			t.Error("the alternate screen stays")
		}
		time.Sleep(time.Second)
	})
}

// BenchmarkTraceFrame draws a view and paints it, as View does after each change.
func BenchmarkTraceFrame(b *testing.B) {
	th := themeOf("dark", colorprofile.TrueColor)
	for _, c := range []struct {
		trace string
		view  viewID
		w, h  int
	}{
		{"dense", viewNow, 80, 24}, {"dense", viewNow, 200, 60}, {"dense", viewOperators, 80, 24}, {"deep", viewLayers, 80, 24},
		{"threads", viewThreads, 80, 24}, {"threads", viewThreads, 200, 60}, {"experts", viewExperts, 200, 60}, {"dense", viewDetails, 80, 24},
	} {
		f := traceNamed(b, c.trace)
		b.Run(c.trace+"-"+traceFile(c.view)+"-"+map[bool]string{true: "200x60", false: "80x24"}[c.w > 80], func(b *testing.B) {
			u := &look{glyphs: cell.Unicode(), view: c.view}
			b.ReportAllocs()
			for b.Loop() {
				canvas, _ := traceFrame(f.l, u, &traceSet{}, c.w, c.h)
				canvas.Render(th.paint)
			}
		})
	}
}
