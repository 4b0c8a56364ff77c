package chrometrace

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/throttle"
)

// WriteCapture writes a capture as a trace: the run and its clients with their requests on top,
// then the server's metrics page, its GPUs, and one group for each process of its tree.
//
// A group is a "process" in the format; its number is arbitrary, because PIDs are reused and
// GPUs have none. Readings over an interval (CPU, tokens per second) are placed at its start,
// because viewers hold a value until the next.
func WriteCapture(w io.Writer, c *capture.Capture) error {
	// Times must not be negative, so the origin moves to the earliest event.
	shift := max(0, -earliest(c))
	p := &painter{shift: shift}
	p.Writer = NewWriter(w, c.Wall.Add(-shift),
		Text("program", "rooftop"), Text("kind", string(c.Kind)), Text("server_metrics", c.PagesFrom),
		Text("processes_from", c.Tree.How), Text("gpus_from", c.GPUs.From), Text("ended", c.Ended))
	p.run(c)
	p.pages(c)
	p.gpus(&c.GPUs)
	p.tree(c)
	return p.Close()
}

// earliest returns the earliest time of a capture.
func earliest(c *capture.Capture) time.Duration {
	t := min(c.Begin, c.End)
	for i := range c.Requests {
		t = min(t, c.Requests[i].Sent)
	}
	for i := range c.Pages {
		t = min(t, c.Pages[i].At)
	}
	for i := range c.GPUs.Readings {
		t = min(t, c.GPUs.Readings[i].T)
	}
	for i := range c.Tree.Samples {
		t = min(t, c.Tree.Samples[i].At)
	}
	for i := range c.Tree.Processes {
		t = min(t, c.Tree.Processes[i].Joined)
	}
	return t
}

// painter assigns numbers to groups and tracks, and shifts times.
type painter struct {
	*Writer
	shift time.Duration
	last  int // last assigned number of a group or a track
	order int // order of the last group
}

// group begins a group of tracks and counters, and returns its number.
func (p *painter) group(name string) int {
	p.last++
	p.order++
	p.Process(p.last, name, p.order)
	return p.last
}

func (p *painter) track(pid int, name string, order int) Track {
	p.last++
	at := Track{PID: pid, TID: p.last}
	p.Thread(at, name, order)
	return at
}

// span draws from one time to another; its length is 0 if they are in the wrong order.
func (p *painter) span(on Track, category, name string, from, to time.Duration, args ...Arg) {
	p.Span(on, category, name, from+p.shift, max(0, to-from), args...)
}

func (p *painter) instant(on Track, category, name string, at time.Duration, args ...Arg) {
	p.Instant(on, category, name, at+p.shift, args...)
}

func (p *painter) counter(pid int, name, unit string, at time.Duration, v stat.Opt) {
	if v.OK {
		p.Counter(pid, name, at+p.shift, unit, v.V)
	}
}

// pages draws the server's own metrics.
func (p *painter) pages(c *capture.Capture) {
	if len(c.Pages) == 0 {
		return
	}
	pid := p.group(strings.TrimSpace(c.PagesFrom + " metrics"))
	on := p.track(pid, "unreadable", 0)
	var before *capture.PageSample
	for i := range c.Pages {
		page := &c.Pages[i]
		if page.Error != "" {
			p.instant(on, "page", "page unreadable", page.At, Text("error", page.Error))
			continue
		}
		if before != nil {
			p.generation(pid, c.Counting, before, page)
			p.counter(pid, "prompt", "tokens/s", before.At, rate(before.PromptTokens, page.PromptTokens, page.At-before.At))
		}
		before = page
		p.counter(pid, "running", "requests", page.At, page.Running)
		p.counter(pid, "waiting", "requests", page.At, page.Waiting)
		p.counter(pid, "KV cache used", "ratio", page.At, page.KVUsage)
	}
}

// generation draws the output between two pages. A counter that grows only when a request ends
// has no meaningful rate, so its value is drawn.
func (p *painter) generation(pid int, counting capture.Counting, before, page *capture.PageSample) {
	if counting == capture.AtEnd {
		p.counter(pid, "generated (counted when a request ends)", "tokens", page.At, page.GenerationTokens)
		return
	}
	p.counter(pid, "generation", "tokens/s", before.At, rate(before.GenerationTokens, page.GenerationTokens, page.At-before.At))
}

// rate returns the growth of a counter per second; absent if it decreased, as after a restart
// of the server.
func rate(from, to stat.Opt, over time.Duration) stat.Opt {
	if !from.OK || !to.OK || over <= 0 || to.V < from.V {
		return stat.None
	}
	return stat.Some((to.V - from.V) / over.Seconds())
}

// gpuCounters are the counters of a GPU, in the order of drawing.
var gpuCounters = []struct {
	field      engine.GPUField
	name, unit string
}{
	{engine.GPUUtil, "utilization", "ratio"},
	{engine.GPUPowerW, "power", "W"},
	{engine.GPUPowerLimitW, "power limit", "W"},
	{engine.GPUVRAMUsed, "VRAM used", "bytes"},
	{engine.GPUVRAMTotal, "VRAM total", "bytes"},
	{engine.GPUMemUtil, "memory controller", "ratio"},
	{engine.GPUSMClockMHz, "SM clock", "MHz"},
	{engine.GPUMemClockMHz, "memory clock", "MHz"},
	{engine.GPUTemperatureC, "temperature", "C"},
	{engine.GPUEnergyJ, "energy", "J"},
	{engine.GPUDRAMActive, "DRAM active", "ratio"},
	{engine.GPUTensorUtil, "tensor cores active", "ratio"},
	{engine.GPUSMActive, "SMs active", "ratio"},
	{engine.GPUPCIeTxBps, "PCIe sent", "bytes/s"},
	{engine.GPUPCIeRxBps, "PCIe received", "bytes/s"},
	{engine.GPUNVLinkTxBps, "NVLink sent", "bytes/s"},
	{engine.GPUNVLinkRxBps, "NVLink received", "bytes/s"},
}

// gpus draws each device with its fields; a change of the reasons for throttling is an instant.
func (p *painter) gpus(g *capture.GPUs) {
	type device struct {
		pid  int
		on   Track
		mask uint64
	}
	known := map[string]*device{}
	for i := range g.Readings {
		for j := range g.Readings[i].Devices {
			at, d := g.Readings[i].T, &g.Readings[i].Devices[j]
			key := fmt.Sprint(d.Index, d.UUID)
			k := known[key]
			if k == nil {
				k = &device{pid: p.group(fmt.Sprintf("GPU %d %s", d.Index, d.Name))}
				k.on = p.track(k.pid, "throttling", 0)
				known[key] = k
			}
			for _, c := range gpuCounters {
				p.counter(k.pid, c.name, c.unit, at, d.Fields[c.field])
			}
			if !d.ThrottleOK || d.Throttle == k.mask {
				continue
			}
			k.mask = d.Throttle
			name := "not throttled"
			if reasons := throttle.Words(d.Throttle &^ throttle.Application &^ throttle.DisplayClock); len(reasons) > 0 {
				name = strings.Join(reasons, ", ")
			}
			p.instant(k.on, "gpu", name, at, Text("reasons", fmt.Sprintf("0x%x", d.Throttle)))
		}
	}
}

// tree draws one group for each process: its lifetime as a span, and counters.
func (p *painter) tree(c *capture.Capture) {
	t := &c.Tree
	end := c.End
	for i := range t.Samples {
		end = max(end, t.Samples[i].At)
	}
	p.looks(t)
	for n := range t.Processes {
		proc := &t.Processes[n]
		pid := p.group(processName(proc))
		on := p.track(pid, "lifetime", 0)
		until := end
		if proc.Gone {
			until = max(proc.Joined, proc.Left)
		}
		p.span(on, "process", processName(proc), proc.Joined, until,
			Int("pid", int64(proc.PID)), Int("parent", int64(proc.PPID)), Int("inner_pid", int64(proc.InnerPID)),
			Text("role", proc.Role), Text("comm", proc.Comm), Text("title", proc.Title))
		p.used(t, n, pid)
		if proc.Gone {
			p.instant(on, "process", "gone", until)
			for _, name := range [...][2]string{{"CPU", "cores"}, {"RSS", "bytes"}, {"threads", "count"}} {
				p.counter(pid, name[0], name[1], until, stat.Some(0))
			}
		}
	}
}

// looks draws the samples of the tree that failed or were partial.
func (p *painter) looks(t *capture.Tree) {
	var on Track
	for i := range t.Samples {
		s := &t.Samples[i]
		if s.Error == "" && !s.Partial {
			continue
		}
		if on.TID == 0 {
			on = p.track(p.group("process tree"), "looks", 0)
		}
		if s.Error != "" {
			p.instant(on, "process", "tree unreadable", s.At, Text("error", s.Error))
		} else {
			p.instant(on, "process", "children hidden", s.At)
		}
	}
}

// used draws the resources of one process, sample by sample.
func (p *painter) used(t *capture.Tree, n, pid int) {
	var before *capture.ProcessSample
	var when time.Duration
	for i := range t.Samples {
		at := t.Samples[i].At
		for j := range t.Samples[i].Processes {
			s := &t.Samples[i].Processes[j]
			if s.Process != n {
				continue
			}
			if before != nil {
				p.counter(pid, "CPU", "cores", when, rate(stat.Some(float64(before.CPU)), stat.Some(float64(s.CPU)), at-when).Times(1e-9))
			}
			before, when = s, at
			p.counter(pid, "RSS", "bytes", at, stat.Some(float64(s.RSSBytes)))
			p.counter(pid, "threads", "count", at, stat.Some(float64(s.Threads)))
		}
	}
}

func processName(p *capture.Process) string {
	name := p.Title
	if name == "" {
		name = p.Comm
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %d", p.Role, name, p.PID))
}
