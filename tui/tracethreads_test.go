package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// TestLaneColumns draws lanes of ten columns over a hundred milliseconds.
func TestLaneColumns(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	at := func(begin, end, sync, off int) optrace.LiveSpan {
		return optrace.LiveSpan{Begin: ms(begin), End: ms(end), Sync: ms(sync), Off: ms(off)}
	}
	for _, c := range []struct {
		name  string
		spans []optrace.LiveSpan
		want  string
	}{
		{"computes", []optrace.LiveSpan{at(0, 100, 0, 0)}, "##########"},
		{"nothing", nil, "          "},
		{"a gap between operators", []optrace.LiveSpan{at(0, 30, 0, 0), at(60, 100, 0, 0)}, "###   ####"},
		{"what waits waits at the end", []optrace.LiveSpan{at(0, 100, 40, 0)}, "######...."},
		{"what is off is off before it waits", []optrace.LiveSpan{at(0, 100, 20, 30)}, "#####xxx.."},
		{"a quarter of a column off is seen", []optrace.LiveSpan{at(0, 10, 0, 3), at(10, 100, 0, 2)}, "x#########"},
		{"the larger part of the others", []optrace.LiveSpan{at(0, 10, 6, 0), at(10, 20, 4, 0)}, ".#        "},
		{"beyond the graph", []optrace.LiveSpan{at(90, 900, 0, 0), at(200, 300, 0, 0), at(-10, 5, 0, 0)}, "         #"},
		{"more off than there is", []optrace.LiveSpan{at(0, 50, 0, 90)}, "xxxxx     "},
		{"times that are none", []optrace.LiveSpan{at(50, 20, 0, 0), at(0, 20, -5, -5)}, "##        "},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			for _, state := range laneColumns(c.spans, ms(100), 10) {
				b.WriteString(laneSigns(cell.ASCII())[state])
			}
			if b.String() != c.want {
				t.Errorf("%q, want %q", b.String(), c.want)
			}
		})
	}
	if got := laneColumns([]optrace.LiveSpan{at(0, 1, 0, 0)}, 0, 10); got != nil {
		t.Errorf("a graph without time has %v", got)
	}
}

// TestSpread lays experts out over more and fewer columns than there are.
func TestSpread(t *testing.T) {
	none := stat.None
	for _, c := range []struct {
		name    string
		chosen  []int64
		columns int
		want    []stat.Opt
	}{
		{"one each", []int64{1, 0, 3}, 3, []stat.Opt{some(0.25), none, some(0.75)}},
		{"the highest of two", []int64{1, 3, 0, 0, 4, 2}, 3, []stat.Opt{some(0.3), none, some(0.4)}},
		{"three each, and a blank between", []int64{1, 1}, 8, []stat.Opt{some(0.5), some(0.5), some(0.5), none, some(0.5), some(0.5), some(0.5), none}},
		{"never chosen", []int64{0, 0}, 8, nil},
		{"counts that are none", []int64{-4, 4}, 2, []stat.Opt{none, some(1)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := spread(c.chosen, total(c.chosen), c.columns); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// TestPerToken says how long a token takes only where a call has one.
func TestPerToken(t *testing.T) {
	call := distribution(20*time.Millisecond, 10)
	for _, c := range []struct {
		row  optrace.PhaseRow
		want string
	}{
		{optrace.PhaseRow{Phase: "decode", Calls: 10, Tokens: 10, Call: call}, "p50 19.6 ms a token, p95 21.4 ms"},
		{optrace.PhaseRow{Phase: "decode", Calls: 10, Tokens: 40, Call: call}, "p50 19.6 ms a call of 4 tokens, p95 21.4 ms"},
		{optrace.PhaseRow{Phase: "prefill", Calls: 10, Tokens: 5120, Call: call}, "p50 19.6 ms a call of 512 tokens"},
		{optrace.PhaseRow{Phase: "decode", Calls: 250, Tokens: 251, Call: call}, "p50 19.6 ms a call of 1 token, p95 21.4 ms"},
		{optrace.PhaseRow{Phase: "unknown", Calls: 10, Call: call}, "p50 19.6 ms a call (tokens unknown), p95 21.4 ms"},
		{optrace.PhaseRow{Phase: "decode"}, ""},
	} {
		if got := strings.ReplaceAll(perToken(&c.row), string(nbsp), " "); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// The rate of answers is shown where the time between calls makes it another, and named.
func TestRateOfAnswers(t *testing.T) {
	row := optrace.PhaseRow{Phase: "decode", Rate: some(3701), Paced: some(2770)}
	if got := strings.ReplaceAll(inAnswers(&row), string(nbsp), " "); got != "in answers; 3,700 tok/s in calls, " {
		t.Errorf("%q", got)
	}
	row.Paced = some(3600)
	if got := inAnswers(&row); got != "" {
		t.Errorf("as fast as in calls: %q", got)
	}
}

// What exports hold is said in seconds of the trace where they do not hold all of it.
func TestSecondsThatAreKept(t *testing.T) {
	if got := keptWords(&optrace.Coverage{KeptFrom: some(56), KeptTo: some(62.04)}); got != ", which hold 56.0 to 62.0 s of the trace" {
		t.Errorf("%q", got)
	}
	if got := keptWords(&optrace.Coverage{}); got != "" {
		t.Errorf("all are kept: %q", got)
	}
}

// A lane of which no operator was traced is not idle.
func TestBusyOfNothingIsNotZero(t *testing.T) {
	g := &optrace.LiveGraph{Time: time.Second, Lanes: []optrace.LiveLane{{}, {Lane: 1}}}
	if got := busyShare(&g.Lanes[0], g); got.OK {
		t.Errorf("graphs alone: %v", got)
	}
	g.Lanes[1].Spans = []optrace.LiveSpan{{End: time.Second / 2}}
	if idle, busy := busyShare(&g.Lanes[0], g), busyShare(&g.Lanes[1], g); idle != some(0) || busy != some(0.5) {
		t.Errorf("%v and %v", idle, busy)
	}
}

func ExampleTraceKeyTable() {
	table, _, _ := strings.Cut(TraceKeyTable(), "\n| `p`")
	fmt.Println(table)
	// Output:
	// | key | does |
	// |---|---|
	// | `+` | trace more detail |
	// | `-` | trace less detail |
}

// TestLayerOfGraphsWithItsOperators holds that the time of a layer is one of the graphs in
// which it was recorded: others, of less detail, do not make it faster.
func TestLayerOfGraphsWithItsOperators(t *testing.T) {
	s := &optrace.Summary{Phases: []optrace.PhaseRow{{Phase: "decode", Graph: optrace.Distribution{Count: 40}}}}
	v := &traceView{s: s, phase: "decode"}
	for graphs, want := range map[int]time.Duration{10: time.Millisecond, 0: time.Millisecond / 4} {
		if got := v.each(&optrace.LayerRow{Graphs: graphs}, 10*time.Millisecond); got != want {
			t.Errorf("of %d graphs: %v, want %v", graphs, got, want)
		}
	}
}

// TestOthersAreFolded holds that processes which hardly had a CPU are one line, and that
// those of which it is not known how much they had, and a single one, are not.
func TestOthersAreFolded(t *testing.T) {
	table := func(shares ...stat.Opt) (names, times []string) {
		var rows []optrace.OtherRow
		for i, share := range shares {
			rows = append(rows, optrace.OtherRow{PID: 100 + i, Name: fmt.Sprintf("p%d", i), Time: time.Millisecond, Share: share})
		}
		columns := thieves(rows)
		return columns[0].texts, columns[2].texts
	}
	much, little := stat.Some(0.02), stat.Some(0.0009)
	if names, times := table(much, little, stat.None, little, little); !slices.Equal(names, []string{"p0", "p2", "3 more, each less"}) || times[2] != howLong(3*time.Millisecond) {
		t.Errorf("%q, %q", names, times)
	}
	if names, _ := table(much, little); !slices.Equal(names, []string{"p0", "p1"}) {
		t.Errorf("one alone: %q", names)
	}
}

// After a change of level every place has the level that goes on and what it costs, and it is
// said that the figures are of others.
func TestTraceAfterAChangeOfLevel(t *testing.T) {
	l := *liveOf(shape{layers: 4, threads: 2, slow: -1})
	s := *l.Summary
	s.Coverage.Detail = "sched"
	s.Coverage.Levels = []optrace.LevelRow{{Detail: "sched", Graphs: 1200, Decode: 1200, Time: 9600 * time.Millisecond}}
	l.Summary, l.Detail = &s, optrace.LevelToken
	l.Observer = optrace.Observer{HitsPerToken: 2, Threads: 1, CostPerHit: time.Microsecond, Expected: 0.001}
	for v, want := range map[viewID][]string{
		viewNow:     {"detail token", "0.1 % of its speed (est): 2 hits a token", "several levels: view 6"},
		viewDetails: {"Coverage detail token", "sched for 1,200 graphs (9.60 s): all in the figures; now token", "0.1 % of its speed (est): 2 hits a token"},
	} {
		u := plainLook()
		u.view = v
		text := strings.Join(strings.Fields(strings.NewReplacer(string(nbsp), " ", "─", "").Replace(traceText(traced{"", &l}, u, 200, 60))), " ")
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("view %d has no %q:\n%s", v+1, w, traceText(traced{"", &l}, u, 200, 60))
			}
		}
		if strings.Contains(text, "detail sched") {
			t.Errorf("view %d has the level of before", v+1)
		}
	}
	s.Coverage.Graphs, s.Threads = 1200, slices.Clone(s.Threads)
	s.Threads[0].Graphs = 25
	u := plainLook()
	u.view = viewThreads
	if text := strings.ReplaceAll(traceText(traced{"", &l}, u, 120, 60), string(nbsp), " "); !strings.Contains(text, "shares: 25 of 1,200 graphs, whose levels tell most") {
		t.Errorf("it is not said what lanes' shares are of:\n%s", text)
	}
	l.Detail = optrace.LevelSched
	if v := (&traceView{live: &l, s: &s}); v.severalLevels() {
		t.Error("one level is several")
	}
}

// What tracing costs is said to be more than it was to, and by what it is reckoned.
func TestTraceCostAboveTheLimit(t *testing.T) {
	u := unicodeLook()
	o := optrace.Observer{HitsPerToken: 434, Threads: 2, CostPerHit: 1640, Expected: 0.047, Graphs: 240, From: optrace.ExpectedTrace, Limit: 0.04}
	text, token := u.costWords(&o, true)
	if text = strings.ReplaceAll(text, string(nbsp), " "); token != cell.Warn || text != "4.7 % of its speed (est), more than --max-overhead 4: 217 hits a token, 1.64 µs each in the mean, by the middle one of 240 decode graphs of the trace" {
		t.Errorf("%q, %v", text, token)
	}
	o.Limit = 0.05
	if text, token = u.costWords(&o, false); token != cell.OK || strings.Contains(text, "more") {
		t.Errorf("within the limit: %q, %v", text, token)
	}
	o.GraphTime, o.MeanGraph, o.Expected = 7*time.Millisecond, 40*time.Millisecond, 0.051
	text, token = u.costWords(&o, false)
	if text = strings.ReplaceAll(text, string(nbsp), " "); token != cell.Warn || text != "5.1 % of its speed (est) by its median token, 0.9 % of its mean one, more than --max-overhead 5" {
		t.Errorf("where others held tokens up: %q, %v", text, token)
	}
	o.MeanGraph, o.Expected, o.Reader = 0, 0.014, stat.Some(0.051)
	text, token = u.costWords(&o, false)
	if text = strings.ReplaceAll(text, string(nbsp), " "); token != cell.Warn || text != "6.5 % of its speed (est: probes 1.4 %, rooftop's CPU 5.1 %), more than --max-overhead 5" {
		t.Errorf("with rooftop's own CPU: %q, %v", text, token)
	}
}
