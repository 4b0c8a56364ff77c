package capture

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
)

// Limits for an idle tree: the three conditions of inferscope's warning, in every sample. A server
// with a model has hundreds of megabytes and dozens of threads.
const (
	idleRSSBytes = 10 << 20
	// idleSpan is the shortest observation that is judged: a small daemon may be idle that long
	// without requests.
	idleSpan = 200 * time.Millisecond
	// idleCores is the CPU use below which a tree does not serve tokens. A server that works on a
	// GPU keeps most of a core busy, and at least a few percent for detokenization and HTTP.
	idleCores = 0.005
	// busyGPU is the utilization from which a GPU counts as working.
	busyGPU = 0.2
)

// activity is the usage of the tree from its first sample to its last.
type activity struct {
	looks   int
	cpu     time.Duration
	span    time.Duration
	rss     int64 // largest sum in a sample
	threads int   // largest sum in a sample
}

// processWarnings warns if the sampled tree is not the server, or only a part of it. The figures of
// the tree remain valid for what was sampled.
func processWarnings(c *Capture) []Warning {
	a := c.Tree.activity()
	if a.looks < 2 {
		return nil
	}
	outside := c.Tree.Listener.PID != 0 && !c.Tree.holds(c.Tree.Listener.PID)
	tokens := tokensSeen(c)
	cores, most := coresWhileServing(c)
	switch {
	case a.idle() && (c.served() || a.span >= idleSpan):
		text := fmt.Sprintf("process %d is idle in all %d samples (RSS at most %s, 1 thread, no CPU time): it may be a wrapper around the server, or another program", c.Tree.Root, a.looks, figure.Value(float64(a.rss), "B"))
		return []Warning{{ID: "idle-pid", Text: text + wayToTheServer(c, outside)}}
	case tokens > 0 && most < idleCores && (outside || c.Tree.Listener.PID == 0):
		text := fmt.Sprintf("the tree of process %d used %s of a core while %s arrived", c.Tree.Root, figure.PercentSign(cores), meanwhile(c, tokens))
		return []Warning{{ID: "wrong-tree", Text: text + ": this is not the serving process" + wayToTheServer(c, outside)}}
	case outside:
		text := fmt.Sprintf("the tree of process %d does not contain the process that listens on the port: its figures describe a part of the server, or another program", c.Tree.Root)
		return []Warning{{ID: "part-of-server", Text: text + wayToTheServer(c, outside)}}
	}
	return nil
}

// activity sums up all samples that did not fail.
func (t *Tree) activity() activity {
	var a activity
	g := t.grow()
	for _, look := range g.looks {
		var rss int64
		threads := 0
		for _, s := range look.Processes {
			rss += s.RSSBytes
			threads += s.Threads
		}
		a.rss, a.threads = max(a.rss, rss), max(a.threads, threads)
	}
	for _, used := range g.used {
		for _, d := range used {
			a.cpu += d
		}
	}
	a.looks = len(g.looks)
	if a.looks == 0 {
		return a
	}
	a.span = g.looks[a.looks-1].At - g.looks[0].At
	return a
}

func (a activity) idle() bool {
	return a.rss < idleRSSBytes && a.threads <= 1 && a.cpu == 0
}

// coresWhileServing returns the mean CPU use of the tree while tokens were generated: over a whole
// probe, or between samples of the page in which the server's counter grew, because an observation
// may be mostly idle. most is the upper bound, because ticks truncate the time; it is +Inf if
// nothing is known.
func coresWhileServing(c *Capture) (cores, most float64) {
	when := []span{{c.Begin, c.End}}
	if !c.served() {
		when = c.counting()
	}
	used, whole := 0.0, 0.0 // seconds
	for _, l := range c.Tree.Load() {
		if slices.ContainsFunc(when, func(s span) bool { return l.From < s.to && l.To > s.from }) {
			used += l.Cores * (l.To - l.From).Seconds()
			whole += (l.To - l.From).Seconds()
		}
	}
	if whole <= 0 {
		return 0, math.Inf(1)
	}
	return used / whole, (used + c.Tree.uncertain().Seconds()) / whole
}

// counting returns the times between samples in which the server's token counter grew. If the
// counter does not change with each step, the times with running requests are included.
func (c *Capture) counting() []span {
	var when []span
	looks := pagesWithCounter(c)
	stepwise := c.stepwise(looks)
	for i := 1; i < len(looks); i++ {
		before, p := looks[i-1], looks[i]
		if p.GenerationTokens.V > before.GenerationTokens.V || !stepwise && p.runs() && before.runs() {
			when = append(when, span{before.At, p.At})
		}
	}
	return when
}

// uncertain returns the CPU time that the tree may have used beyond its samples: none if its
// processes have precise clocks.
func (t *Tree) uncertain() time.Duration {
	for i := range t.Samples {
		for _, s := range t.Samples[i].Processes {
			if s.CPU%tick != 0 {
				return 0
			}
		}
	}
	return rounding * time.Duration(len(t.Processes))
}

// holds reports whether a process was in the tree in any sample.
func (t *Tree) holds(pid int) bool {
	return slices.ContainsFunc(t.Processes, func(p Process) bool { return p.PID == pid })
}

// served reports whether one of our requests got output, so that the server cannot have been idle.
func (c *Capture) served() bool {
	return slices.ContainsFunc(c.Requests, func(r Request) bool { return len(r.Chunks) > 0 })
}

// tokensSeen returns the visible output: our own chunks, or else the growth of the server's
// counter.
func tokensSeen(c *Capture) float64 {
	chunks := 0
	for i := range c.Requests {
		chunks += len(c.Requests[i].Chunks)
	}
	if chunks > 0 {
		return float64(chunks)
	}
	looks := pagesWithCounter(c)
	if len(looks) == 0 {
		return 0
	}
	return max(0, looks[len(looks)-1].GenerationTokens.V-looks[0].GenerationTokens.V)
}

// meanwhile describes the other activity: tokens, and a busy GPU.
func meanwhile(c *Capture, tokens float64) string {
	text := figure.Whole(tokens) + " tokens"
	most := 0.0
	for _, r := range c.GPUs.Readings {
		for i := range r.Devices {
			most = max(most, r.Devices[i].Fields[engine.GPUUtil].Or(0))
		}
	}
	if most >= busyGPU {
		text += fmt.Sprintf(" and a GPU was up to %s busy", figure.PercentSign(most))
	}
	return text
}

// wayToTheServer returns the next step: the right PID if it is known, otherwise how to find it, and
// how to check it.
func wayToTheServer(c *Capture, outside bool) string {
	pid := "PID"
	var b strings.Builder
	if l := c.Tree.Listener; outside {
		pid = fmt.Sprint(l.PID)
		fmt.Fprintf(&b, "; process %d", l.PID)
		if l.Comm != "" {
			fmt.Fprintf(&b, " (%s)", l.Comm)
		}
		b.WriteString(" listens on the port")
		if l.Port != 0 {
			fmt.Fprintf(&b, " %d", l.Port)
		}
		fmt.Fprintf(&b, ": give --pid %d, or leave --pid out", l.PID)
	} else {
		b.WriteString("; find the server's PID with pgrep -x NAME (llama-server, vllm), or leave --pid out")
	}
	fmt.Fprintf(&b, "; check with grep -E 'VmRSS|Threads' /proc/%s/status: a server has hundreds of MiB and many threads", pid)
	return b.String()
}
