package capture

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// What makes a tree look idle: the three conditions of inferscope's warning, all
// in every look. A server of a model holds hundreds of megabytes and dozens of
// threads.
const (
	idleRSSBytes = 10 << 20
	// idleSpan is the shortest observation that is judged: without a request, a small
	// daemon may rest that long.
	idleSpan = 200 * time.Millisecond
	// idleCores is the CPU use below which a tree does not serve tokens. A server that
	// does its work on a GPU keeps most of a core busy, and the least of them some
	// percent: detokenizing and HTTP remain.
	idleCores = 0.005
	// busyGPU is the share of time from which a GPU counts as at work.
	busyGPU = 0.2
)

// activity is what the tree did from its first look to its last.
type activity struct {
	looks   int
	cpu     time.Duration
	span    time.Duration
	rss     int64 // largest sum of a look
	threads int   // largest sum of a look
	stirred bool  // something shows that it ran: context switches, page faults, I/O
}

// processWarnings says where the sampled tree is not the server, or only a part
// of it. It stops nothing: the figures of the tree stay true of what they were
// taken of.
func (c *Capture) processWarnings() []Warning {
	a := c.Tree.activity()
	if a.looks < 2 {
		return nil
	}
	outside := c.Tree.Listener.PID != 0 && !c.Tree.holds(c.Tree.Listener.PID)
	tokens := c.tokensSeen()
	cores, most := c.coresWhileServing()
	switch {
	case a.idle() && (c.served() || a.span >= idleSpan):
		text := fmt.Sprintf("process %d looks idle in all %d looks (RSS at most %s, 1 thread, no CPU time): it may be a wrapper of the server, or another program", c.Tree.Root, a.looks, memory(a.rss))
		return []Warning{{ID: "idle-pid", Text: text + c.wayToTheServer(outside)}}
	case tokens > 0 && most < idleCores && (outside || c.Tree.Listener.PID == 0):
		text := fmt.Sprintf("the tree of process %d used %s of a core while %s came", c.Tree.Root, percent(cores), c.meanwhile(tokens))
		return []Warning{{ID: "wrong-tree", Text: text + ": this is not the process that serves" + c.wayToTheServer(outside)}}
	case outside:
		text := fmt.Sprintf("the tree of process %d does not hold the process that listens on the port: its figures are of a part of the server, or of another program", c.Tree.Root)
		return []Warning{{ID: "part-of-server", Text: text + c.wayToTheServer(outside)}}
	}
	return nil
}

// activity sums up all looks that did not fail.
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
	for p := range t.Processes {
		a.stirred = a.stirred || stirred(g.of[p])
	}
	return a
}

// stirred tells whether any counter of a process grew: where CPU time is counted
// in ticks, they tell a daemon that works a millisecond at a time from one that
// does not. Time of its children is in the CPU time.
func stirred(looks []entry) bool {
	var before [5]stat.Opt
	for _, s := range looks {
		for j, now := range [...]stat.Opt{s.VoluntarySwitches, s.InvoluntarySwitches, s.MinorFaults, s.ReadBytes, s.WrittenBytes} {
			if grown(before[j], now).V > 0 {
				return true
			}
			if now.OK {
				before[j] = now
			}
		}
	}
	return false
}

func (a activity) idle() bool {
	return a.rss < idleRSSBytes && a.threads <= 1 && a.cpu == 0 && !a.stirred
}

// coresWhileServing is the mean CPU use of the tree while tokens came: over the whole
// run of a probe, and over the looks at the page between which the server's counter
// grew, since a window may hold little but rest. most is what it may have been at
// most, +Inf where nothing is known: time that is counted in ticks is cut to them.
func (c *Capture) coresWhileServing() (cores, most float64) {
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

// counting are the times between looks at the server's page over which its counter of
// output tokens grew, and of one that does not move with each step, over which requests
// ran.
func (c *Capture) counting() []span {
	var when []span
	stepwise := c.stepwise(c.pagesWithCounter())
	var before *PageSample
	for i := range c.Pages {
		p := &c.Pages[i]
		if !p.GenerationTokens.OK {
			continue
		}
		if before != nil && (p.GenerationTokens.V > before.GenerationTokens.V || !stepwise && p.runs() && before.runs()) {
			when = append(when, span{before.At, p.At})
		}
		before = p
	}
	return when
}

// uncertain is how much CPU time the tree may have used that its looks do not show:
// none where its processes have clocks.
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

// holds tells whether a process was in the tree at any look.
func (t *Tree) holds(pid int) bool {
	for _, p := range t.Processes {
		if p.PID == pid {
			return true
		}
	}
	return false
}

// served tells whether a request of ours got any output, so that the server
// cannot have rested.
func (c *Capture) served() bool {
	for i := range c.Requests {
		if len(c.Requests[i].Chunks) > 0 {
			return true
		}
	}
	return false
}

// tokensSeen counts output by what shows it: our own chunks, else the growth of
// the server's counter.
func (c *Capture) tokensSeen() float64 {
	chunks := 0
	for i := range c.Requests {
		chunks += len(c.Requests[i].Chunks)
	}
	if chunks > 0 {
		return float64(chunks)
	}
	first, last := -1.0, -1.0
	for i := range c.Pages {
		if v := c.Pages[i].GenerationTokens; v.OK {
			if last = v.V; first < 0 {
				first = v.V
			}
		}
	}
	return max(0, last-first)
}

// meanwhile says what else went on: tokens, and a GPU at work.
func (c *Capture) meanwhile(tokens float64) string {
	text := figure.Whole(tokens) + " tokens"
	most := 0.0
	for _, r := range c.GPUs.Readings {
		for i := range r.Devices {
			most = max(most, r.Devices[i].Fields[engine.GPUUtil].Or(0))
		}
	}
	if most >= busyGPU {
		text += fmt.Sprintf(" and a GPU was up to %s busy", percent(most))
	}
	return text
}

// wayToTheServer is the next step: the right PID where it is known, else how to
// find it, and how to check it.
func (c *Capture) wayToTheServer(outside bool) string {
	name, pid := "NAME", "PID"
	var b strings.Builder
	if l := c.Tree.Listener; outside {
		pid = fmt.Sprint(l.PID)
		fmt.Fprintf(&b, "; process %d", l.PID)
		if l.Comm != "" {
			name = l.Comm
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
	if outside && strings.IndexByte(name, ' ') < 0 && name != "NAME" && !interprets(name) {
		fmt.Fprintf(&b, " (pgrep -x %s finds it too)", name)
	}
	fmt.Fprintf(&b, "; check with grep -E 'VmRSS|Threads' /proc/%s/status: a server has hundreds of MiB and many threads", pid)
	return b.String()
}

// interpreters lend their name to whatever they run.
var interpreters = []string{
	"python", "pypy", "node", "deno", "bun", "java", "ruby", "perl", "php", "lua", "dotnet", "Rscript", "julia",
	"bash", "sh", "dash", "zsh", "ash", "ksh", "fish", "busybox",
}

// interprets tells whether a name finds whatever that interpreter runs on the machine:
// "python3.12", "node".
func interprets(name string) bool {
	return slices.Contains(interpreters, strings.TrimRight(name, "0123456789."))
}

func memory(bytes int64) string {
	number, unit := figure.Memory(float64(bytes))
	return number + figure.NBSP + unit
}
