package capture

import (
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// What makes a tree starved of CPU. A busy server that has its cores to itself waits
// little: vLLM on two cores that it kept busy for 8 s ran 15.7 s and waited 2.75 s,
// llama.cpp ran 2.07 s and waited 0.12 s. Beside another program of the same appetite
// either waits about as long as it runs.
const (
	// starvedRatio is the time that threads waited for a CPU over the time they ran.
	starvedRatio = 0.5
	// starvedRate is the waiting in seconds for each second of the run: what hardly runs
	// is not held up by a short wait.
	starvedRate = 0.3
	// throttledShare is the share of a control group's enforcement periods that were cut
	// short.
	throttledShare = 0.1
	// wholeMachine is the share of its cores from which a tree has them to itself: then
	// what its threads wait for are one another.
	wholeMachine = 0.9
)

// starvation says where the server did not get the CPU that it asked for, so that its
// times are not its own.
func (c *Capture) starvation(t *TreeUsage) []Warning {
	if t == nil || c.Span() < idleSpan {
		return nil
	}
	var out []Warning
	throttled := c.throttled(t.Cgroup)
	if throttled != "" {
		out = append(out, Warning{ID: "cpu-throttled", Text: throttled})
	}
	ran, waited := t.Total.CPUSeconds, t.Total.RunWaitSeconds
	// Waiting is read by the looks around the run, which may be short beside them.
	seconds := max(c.Span(), c.Tree.waitSpan()).Seconds()
	if !ran.OK || !waited.OK || waited.V <= starvedRatio*ran.V || waited.V <= starvedRate*seconds {
		return out
	}
	text := fmt.Sprintf("%s threads waited %s for a CPU while they ran %s: ", c.whose(), figure.Show(waited, "s"), figure.Show(ran, "s"))
	switch cores := c.cores(t.Cgroup); {
	case throttled != "":
		text += "the limit of its control group holds them up, and its times are longer than its own; raise it, or run fewer threads"
	case cores.OK && ran.V >= wholeMachine*cores.V*seconds:
		text += fmt.Sprintf("it has all of its %s to itself and more threads that want to run; start it with fewer (llama-server -t N, OMP_NUM_THREADS=N), or give it more cores", coresText(cores.V))
	default:
		text += "its cores are shared with others (or limited: cgroup, taskset), and its times are longer than its own; see who else runs with top, and measure again without them, or give it cores of its own (taskset, cpuset)"
	}
	return append(out, Warning{ID: "cpu-starved", Text: text})
}

// throttled says by how much the control group's limit held the tree up, "" where it
// did not.
func (c *Capture) throttled(g *CgroupUsage) string {
	if g == nil || g.ThrottledShare.Or(0) <= throttledShare {
		return ""
	}
	text := fmt.Sprintf("the control group of the tree was throttled in %s of its periods", percent(g.ThrottledShare.V))
	if g.ThrottledSeconds.OK {
		text += fmt.Sprintf(", %s in all", figure.Show(g.ThrottledSeconds, "s"))
	}
	if g.CPULimitCores.OK {
		text += ": its limit is " + coresText(g.CPULimitCores.V)
	} else {
		text += ": its limit stands where it cannot be read"
	}
	return text + ", and times are longer than " + c.whose() + " own; raise the limit (docker update --cpus, resources.limits.cpu, systemd's CPUQuota), or run fewer threads"
}

// cores are those that the tree may use: the machine's, or what its control group
// allows.
func (c *Capture) cores(g *CgroupUsage) stat.Opt {
	cores := stat.None
	if c.Tree.CPUs > 0 {
		cores = stat.Some(float64(c.Tree.CPUs))
	}
	if g != nil && g.CPULimitCores.OK && (!cores.OK || g.CPULimitCores.V < cores.V) {
		return g.CPULimitCores
	}
	return cores
}

func coresText(n float64) string { return fmt.Sprintf("%.3g%scores", n, figure.NBSP) }

// whose names the owner of the tree's figures: the server, unless that listens
// elsewhere.
func (c *Capture) whose() string {
	if pid := c.Tree.Listener.PID; pid != 0 && !c.Tree.holds(pid) {
		return "the tree's"
	}
	return "the server's"
}

// waitSpan is the time from the first look that tells how long threads waited to the
// last one.
func (t *Tree) waitSpan() time.Duration {
	first, last := time.Duration(-1), time.Duration(-1)
	for i := range t.Samples {
		for _, p := range t.Samples[i].Processes {
			if !p.RunWaitSeconds.OK {
				continue
			}
			if last = t.Samples[i].At; first < 0 {
				first = last
			}
			break
		}
	}
	return last - first
}
