package capture

import (
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits for a tree that is starved of CPU. A busy server with its own cores waits little: vLLM,
// which kept two cores busy for 8 s, ran 15.7 s and waited 2.75 s; llama.cpp ran 2.07 s and waited
// 0.12 s. With a similar competing program either waits about as long as it runs.
const (
	// starvedRatio is the time that threads waited for a CPU divided by the time they ran.
	starvedRatio = 0.5
	// starvedRate is the waiting time in seconds per second of the run: a server that hardly runs
	// is not slowed down by a short wait.
	starvedRate = 0.3
	// throttledShare is the share of a control group's enforcement periods in which it was
	// throttled.
	throttledShare = 0.1
	// wholeMachine is the share of its cores from which a tree counts as having them to itself: its
	// threads then wait for each other.
	wholeMachine = 0.9
)

// starvation warns if the server did not get the CPU time that it needed, so that its latencies
// depend on other programs.
func starvation(c *Capture, t *TreeUsage) []Warning {
	if t == nil || c.Span() < idleSpan {
		return nil
	}
	var out []Warning
	throttled := throttled(c, t.Cgroup)
	if throttled != "" {
		out = append(out, Warning{ID: "cpu-throttled", Text: throttled})
	}
	ran, waited := t.Total.CPUSeconds, t.Total.RunWaitSeconds
	// Waiting is measured between the samples around a run, which may be short compared to their
	// distance.
	seconds := max(c.Span(), c.Tree.span()).Seconds()
	if !ran.OK || !waited.OK || waited.V <= starvedRatio*ran.V || waited.V <= starvedRate*seconds {
		return out
	}
	text := fmt.Sprintf("%s threads waited %s for a CPU and ran for %s: ", whose(c), figure.Show(waited, "s"), figure.Show(ran, "s"))
	switch cores := c.cores(t.Cgroup); {
	case throttled != "":
		text += "the limit of its control group delays them, so its latencies are inflated; raise the limit, or run fewer threads"
	case cores.OK && ran.V >= wholeMachine*cores.V*seconds:
		text += fmt.Sprintf("it has all of its %s to itself and more runnable threads than that; start it with fewer (llama-server -t N, OMP_NUM_THREADS=N), or give it more cores", figure.Value(cores.V, "cores"))
	default:
		text += "other programs share its cores (or cgroup or taskset limit them), so its latencies are inflated; find the others with top and measure again without them, or give it dedicated cores (taskset, cpuset)"
	}
	return append(out, Warning{ID: "cpu-starved", Text: text})
}

// throttled describes how much the control group's limit slowed the tree down, "" if it did not.
func throttled(c *Capture, g *CgroupUsage) string {
	if g == nil || g.ThrottledShare.Or(0) <= throttledShare {
		return ""
	}
	text := fmt.Sprintf("the control group of the tree was throttled in %s of its periods", figure.PercentSign(g.ThrottledShare.V))
	if g.ThrottledSeconds.OK {
		text += fmt.Sprintf(", %s in all", figure.Show(g.ThrottledSeconds, "s"))
	}
	if g.CPULimitCores.OK {
		text += ": its limit is " + figure.Value(g.CPULimitCores.V, "cores")
	} else {
		text += ": its limit cannot be read"
	}
	return text + ", which inflates " + whose(c) + " latencies; raise the limit (docker update --cpus, resources.limits.cpu, systemd's CPUQuota), or run fewer threads"
}

// cores returns the number of cores that the tree may use: the machine's, or the limit of its
// control group.
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

// whose returns the subject of the tree's figures: the server, unless that listens elsewhere.
func whose(c *Capture) string {
	if pid := c.Tree.Listener.PID; pid != 0 && !c.Tree.holds(pid) {
		return "the tree's"
	}
	return "the server's"
}

// span returns the time between the first and the last sample, which have the waiting times.
func (t *Tree) span() time.Duration {
	if len(t.Samples) == 0 {
		return 0
	}
	return t.Samples[len(t.Samples)-1].At - t.Samples[0].At
}
