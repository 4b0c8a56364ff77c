package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// mostThreads are the lanes shown without -v: those of a server of many cores look
// alike.
const mostThreads = 8

// threads is what each compute thread did with the time of graphs.
func (r *tracePage) threads() {
	rows := r.s.Threads
	if len(rows) == 0 {
		return
	}
	marks := r.shares()
	waits := " waits for others "
	if slices.ContainsFunc(rows, func(t optrace.ThreadRow) bool { return finite(t.Off).OK && finite(t.Sync).OK }) {
		waits = " waits for others on its CPU "
	}
	r.section("Threads", "shares of the time of graphs: "+marks[0]+" computes "+marks[1]+waits+marks[2]+" off its CPU")
	n := r.most(len(rows), mostThreads)
	cells := 12
	if r.width >= 100 {
		cells = 30
	}
	share := func(f func(*optrace.ThreadRow) stat.Opt) func(int) string {
		return func(i int) string { return percent(f(&rows[i])) }
	}
	count := func(f func(*optrace.ThreadRow) stat.Opt) func(int) string {
		return func(i int) string { return figure.Show(finite(f(&rows[i])), "") }
	}
	r.grid(n, []column{
		{head: "lane", left: true, tone: strong, of: func(i int) string { return figure.Whole(float64(rows[i].Lane)) }},
		{head: "", rank: 1, left: true, tone: accent, of: func(i int) string { return stacked(marks, cells, rows[i].Busy, rows[i].Sync, rows[i].Off) }},
		{head: "busy", of: share(func(t *optrace.ThreadRow) stat.Opt { return t.Busy })},
		{head: "waits", of: share(func(t *optrace.ThreadRow) stat.Opt { return t.Sync })},
		{head: "off" + nbsp + "CPU", of: share(func(t *optrace.ThreadRow) stat.Opt { return t.Off })},
		{head: "preempted", rank: 2, of: share(func(t *optrace.ThreadRow) stat.Opt { return t.Preempted })},
		{head: "wake-up" + nbsp + "p95", rank: 3, of: func(i int) string { return phaseTime(&rows[i].WakeUp, p95Of) }},
		{head: "switches", rank: 4, of: count(func(t *optrace.ThreadRow) stat.Opt { return t.Switches })},
		{head: "faults", rank: 5, of: count(func(t *optrace.ThreadRow) stat.Opt { return t.MinorFaults })},
		{head: "major", rank: 4, of: count(func(t *optrace.ThreadRow) stat.Opt { return t.MajorFaults })},
		{head: "syscalls", rank: 6, of: count(func(t *optrace.ThreadRow) stat.Opt { return t.Syscalls })},
		{head: "in" + nbsp + "them", rank: 7, of: func(i int) string { return figure.Show(finite(rows[i].SyscallTime), "s") }},
		{head: "read", rank: 7, of: func(i int) string { return figure.Show(finite(rows[i].IOBytes), "B") }},
		{head: "thread" + nbsp + "ids", rank: 8, of: func(i int) string { return figure.Whole(float64(rows[i].Threads)) }},
	})
	r.left(len(rows)-n, "lane")
}

// shares are the marks of the parts of a thread's time.
func (r *tracePage) shares() [3]string {
	if r.o.ASCII {
		return [3]string{"#", "=", "."}
	}
	return [3]string{"█", "░", "·"}
}

// stacked draws parts of a whole side by side; parts that are not known have no cells.
func stacked(marks [3]string, cells int, parts ...stat.Opt) string {
	var b strings.Builder
	at, drawn := 0.0, 0
	for i, part := range parts {
		v := finite(part)
		if !v.OK || v.V <= 0 {
			continue
		}
		at += v.V
		end := min(cells, int(min(at, 1)*float64(cells)+0.5))
		b.WriteString(strings.Repeat(marks[i], max(0, end-drawn)))
		drawn = max(drawn, end)
	}
	return b.String()
}

// processID is the number of a process, absent where a row is of several.
func processID(pid int) string {
	if pid <= 0 {
		return absent
	}
	return strconv.Itoa(pid)
}

// others is who had the CPU of compute threads that could have run, their siblings among them.
func (r *tracePage) others() {
	rows := r.s.Others
	if len(rows) == 0 {
		return
	}
	r.section("Who had the CPU instead", "while a compute thread waited for it; of lanes: time, of that of all of them; of graphs: by the lane of each that lost most to it")
	n := r.most(len(rows), 5)
	r.grid(n, []column{
		{head: "PID", of: func(i int) string { return processID(rows[i].PID) }},
		{head: "", left: true, tone: strong, of: func(i int) string { return clipped(r.span(body, cmp.Or(rows[i].Name, absent)).s, longestName) }},
		{head: "time", of: func(i int) string { return shownTime(rows[i].Time) }},
		{head: "of lanes", of: func(i int) string { return percent(rows[i].OfLanes) }},
		{head: "of graphs", of: func(i int) string { return percent(rows[i].Share) }},
	})
	r.left(len(rows)-n, "row")
}
