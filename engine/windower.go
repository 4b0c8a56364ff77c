package engine

import (
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Window geometry: nine polls 250 ms apart; neighbouring windows share a poll, so a window
// spans eight gaps, 2.0 s. With slow pages it lasts at least that long and has at least three
// polls (docs/dev/decisions.md 14).
const (
	PollInterval   = 250 * time.Millisecond
	WindowLength   = 2 * time.Second
	WindowMinPolls = 3
	// WindowSlack lets a poll that came slightly early still close its window.
	WindowSlack = PollInterval / 2
	// maxSkew is the largest time between the readings of page and GPU for rules that combine
	// both.
	maxSkew = time.Second
)

// Windower cuts a stream of samples into windows. The zero value is ready to use. It allocates
// only while its buffers grow: with a constant number of ranks, GPUs and buckets, adding a
// sample does not allocate.
type Windower struct {
	Index int // index of the open window

	win     Window
	open    bool
	start   time.Duration // tick at which the window began
	edge    Sample        // the poll that closed the last window; it opens the next
	first   *Page
	last    *Page
	means   gaugeMeans
	running []float64 // running requests of each poll in the window
	ranks   []rankSums
	gpus    []gpuSums
	skewed  bool

	// State across windows.
	vitals vitals
	slots  occupancy
}

// gaugeMeans are the means of a window's gauges over its polls.
type gaugeMeans struct {
	running, waiting, deferred, swapped, kv, cpuKV stat.Average
	runningLoRAs, waitingLoRAs                     stat.Average
}

type rankSums struct {
	running, waiting stat.Average
	first, last      Rank
}

type gpuSums struct{ mean [NumGPUFields]stat.Average }

// Add takes one sample. It returns the window that the sample closed, or nil. The window is
// valid until the next call; use Clone to keep it.
func (w *Windower) Add(s *Sample) *Window {
	if !w.open {
		w.open = true
		w.carry(s.T)
	}
	w.win.Missed += s.Missed
	w.addPage(s)
	w.vitals.addHealth(s.Health)
	w.addGPU(s)
	if s.T-w.start < WindowLength-WindowSlack || w.win.Polls+w.win.Failed < WindowMinPolls {
		return nil
	}
	w.edge, w.edge.Missed = *s, 0
	return w.close()
}

// Discard drops the open window after a gap in the readings. What is known of the engine's life
// stays: whether it is stuck shows in the next pages.
func (w *Windower) Discard() {
	kept := w.vitals
	kept.broken = true
	*w = Windower{Index: w.Index + 1, vitals: kept}
}

// Flush closes the open window at the end of a run. It returns nil if the window is shorter
// than half a regular one, too little to weigh the same, and no scrape failed in it.
func (w *Windower) Flush() *Window {
	failed := w.win.Failed > 0 // keep the failures of a server that died
	if !w.open || !failed && (w.first == nil || w.last.T-w.first.T < WindowLength/2 || w.win.Polls < WindowMinPolls) {
		return nil
	}
	w.edge = Sample{}
	return w.close()
}

// begin empties the window but keeps its buffers.
func (w *Windower) begin(at time.Duration) {
	ranks, gpus, hist := w.win.Ranks[:0], w.win.GPUs[:0], w.win.Hist
	for i := range hist {
		hist[i].Reset()
	}
	w.win = Window{Index: w.Index, Ranks: ranks, GPUs: gpus, Hist: hist}
	w.ranks, w.gpus = w.ranks[:0], w.gpus[:0]
	w.means = gaugeMeans{}
	w.running = w.running[:0]
	w.first, w.last, w.skewed = nil, nil, false
	w.start = at
}

// carry begins a window with the poll that closed the previous one, or empty if there was none
// or it failed.
func (w *Windower) carry(now time.Duration) {
	if w.edge.Page == nil {
		w.begin(now)
		return
	}
	w.begin(w.edge.T)
	w.addPage(&w.edge)
	w.addGPU(&w.edge)
}

func (w *Windower) addPage(s *Sample) {
	p := s.Page
	if p == nil {
		w.win.Failed++
		w.win.LastErr = s.PageErr
		w.vitals.broken = true
		return
	}
	if before := w.vitals.previous; before != nil && Restarted(before, p) {
		// Within a window the restart invalidates the deltas. In the gap before the first page
		// it does not.
		if w.last != nil {
			w.win.Restarted = true
		} else {
			w.win.AfterRestart = true
		}
	}
	if w.vitals.addPage(p) {
		w.win.Progress = true
	}
	if w.first == nil {
		w.first = p
	}
	w.last = p
	win := &w.win
	win.Polls++
	running, waiting := p.Gauges[GaugeRunning], p.Gauges[GaugeWaiting]
	w.means.running.Add(running, 1)
	if running.OK {
		w.running = append(w.running, running.V)
	}
	w.means.waiting.Add(waiting, 1)
	w.means.deferred.Add(p.Gauges[GaugeWaitingDeferred], 1)
	w.means.swapped.Add(p.Gauges[GaugeSwapped], 1)
	w.means.runningLoRAs.Add(p.Gauges[GaugeRunningLoRAs], 1)
	w.means.waitingLoRAs.Add(p.Gauges[GaugeWaitingLoRAs], 1)
	win.LoRAs.Wanted = win.LoRAs.Wanted.Max(p.Gauges[GaugeRunningLoRAs].Plus(p.Gauges[GaugeWaitingLoRAs]))
	w.means.kv.Add(p.kvUsage(), 1)
	w.means.cpuKV.Add(p.Gauges[GaugeCPUKVUsage], 1)
	win.RunningPeak = win.RunningPeak.Max(running)
	win.WaitingPeak = win.WaitingPeak.Max(waiting)
	if running.OK && (!win.RunningMin.OK || running.V < win.RunningMin.V) {
		win.RunningMin = running
	}
	win.KVPeak = win.KVPeak.Max(p.KVUsageMax).Max(p.Gauges[GaugeKVUsage])
	if p.Gauges[GaugeAsleep].Or(0) > 0 {
		win.Asleep = true
	}
	w.addRanks(p)
}

func (w *Windower) addRanks(p *Page) {
	if len(p.Ranks) != len(w.ranks) {
		if len(w.ranks) > 0 && w.win.Polls > 1 {
			// The set of ranks changed: the sums belong to other ranks.
			w.ranks = w.ranks[:0]
		}
		for i := range p.Ranks {
			w.ranks = append(w.ranks, rankSums{first: p.Ranks[i]})
			w.win.Ranks = append(w.win.Ranks[:i], RankWindow{Name: p.Ranks[i].Name})
		}
	}
	haveGauges := HaveGauges(p.Ranks)
	for i := range p.Ranks {
		r := &w.ranks[i]
		r.last = p.Ranks[i]
		r.running.Add(p.Ranks[i].Gauges[GaugeRunning], 1)
		r.waiting.Add(p.Ranks[i].Gauges[GaugeWaiting], 1)
		out := &w.win.Ranks[i]
		out.KVPeak = out.KVPeak.Max(p.Ranks[i].Gauges[GaugeKVUsage])
		if out.Untouched = p.Ranks[i].Untouched(haveGauges); out.Untouched {
			zero := stat.Some(0)
			r.running.Add(zero, 1)
			r.waiting.Add(zero, 1)
			out.KVPeak = out.KVPeak.Max(zero)
		}
	}
}

func (w *Windower) addGPU(s *Sample) {
	g := s.GPU
	if g == nil {
		return
	}
	if s.Page != nil {
		apart := s.Page.T - g.T
		w.skewed = apart > maxSkew || apart < -maxSkew
	}
	for len(w.gpus) < len(g.Devices) {
		w.gpus = append(w.gpus, gpuSums{})
		w.win.GPUs = append(w.win.GPUs, GPUWindow{})
	}
	for i := range g.Devices {
		d, out := &g.Devices[i], &w.win.GPUs[i]
		out.Index, out.Name, out.UUID = d.Index, d.Name, d.UUID
		out.Last = d.Fields
		for f := range d.Fields {
			w.gpus[i].mean[f].Add(d.Fields[f], 1)
			out.Peak[f] = out.Peak[f].Max(d.Fields[f])
		}
		if d.ThrottleOK {
			out.Throttle |= d.Throttle
			out.ThrottleOK = true
		}
	}
}

// close computes the values that need the whole window.
func (w *Windower) close() *Window {
	win := &w.win
	w.open = false
	w.Index++
	win.LongestStep = w.vitals.longest
	w.closeGPU()
	if w.first == nil {
		win.Start = w.start
		win.Why = "no scrape answered"
		return win
	}
	win.Start = w.first.T
	win.Duration = w.last.T - w.first.T
	win.Running = w.means.running.Mean()
	win.Occupied = w.slots.add(w.last, win.Restarted || win.AfterRestart)
	slices.Sort(w.running)
	win.RunningMedian = stat.NearestRank(w.running, 0.5)
	win.Waiting = w.means.waiting.Mean()
	win.Deferred = w.means.deferred.Mean()
	win.LoRAs.Running, win.LoRAs.Waiting = w.means.runningLoRAs.Mean(), w.means.waitingLoRAs.Mean()
	win.LoRAs.Max = w.last.Gauges[GaugeMaxLoRAs]
	win.Swapped = w.means.swapped.Mean()
	win.KV = w.means.kv.Mean()
	win.CPUKV = w.means.cpuKV.Mean()
	win.KVLast = w.last.kvUsage()
	win.PrefixGauge = w.last.Gauges[GaugePrefixHitRate]
	win.Last = w.last.Counters
	win.HistNames = w.last.HistNames
	w.closeDeltas()
	w.closeRanks()
	w.vitals.close(win, w.last.T)
	win.CountedStep = countedStep(win)
	win.StepTime = stepTime(win)
	switch {
	case win.Restarted:
		win.Why = "the server restarted inside the window"
	case win.Polls < WindowMinPolls:
		win.Why = "too few scrapes answered"
	case win.Duration <= 0:
		win.Why = "no time between its scrapes"
	case !win.Running.OK:
		win.Why = "the page has no running gauge"
	default:
		win.Evaluable = true
	}
	win.Active = win.Evaluable && active(win)
	return win
}

func (w *Windower) closeDeltas() {
	win, seconds := &w.win, w.win.Duration.Seconds()
	for h := range win.Hist {
		last := &w.last.Hists[h]
		if last.OK && last.Count > 0 {
			win.Lifetime[h] = stat.Some(last.Sum / last.Count)
		}
		if win.Restarted || win.Polls < 2 {
			win.Hist[h].Reset()
			continue
		}
		win.Hist[h].Set(&w.first.Hists[h], last)
	}
	if win.Restarted || seconds <= 0 {
		return
	}
	for c := range win.Delta {
		a, b := w.first.Counters[c], w.last.Counters[c]
		if a.OK && b.OK && b.V >= a.V {
			win.Delta[c] = stat.Some(b.V - a.V)
			win.Rate[c] = stat.Some((b.V - a.V) / seconds)
		}
	}
}

func (w *Windower) closeRanks() {
	win, seconds := &w.win, w.win.Duration.Seconds()
	for i := range w.ranks {
		r, out := &w.ranks[i], &win.Ranks[i]
		out.Running, out.Waiting = r.running.Mean(), r.waiting.Mean()
		out.MaxNumSeqs = r.last.Gauges[GaugeMaxNumSeqs]
		if win.Restarted || seconds <= 0 {
			continue
		}
		if a, b := r.first.Generation, r.last.Generation; a.OK && b.OK && b.V >= a.V {
			out.Generation = stat.Some(b.V - a.V)
		}
		if a, b := r.first.Steps, r.last.Steps; a.OK && b.OK && b.V >= a.V {
			out.StepsPerS = stat.Some((b.V - a.V) / seconds)
		}
	}
}

// closeGPU sets the scalars over GPUs: power summed, utilizations averaged, memory of the
// fullest GPU.
func (w *Windower) closeGPU() {
	win := &w.win
	win.Skewed = w.skewed
	var util, mem, dram, power stat.Average
	for i := range win.GPUs {
		g := &win.GPUs[i]
		for f := range g.Mean {
			g.Mean[f] = w.gpus[i].mean[f].Mean()
		}
		util.Add(g.Mean[GPUUtil], 1)
		win.GPUBusy = win.GPUBusy.Max(g.Mean[GPUUtil])
		mem.Add(g.Mean[GPUMemUtil], 1)
		dram.Add(g.Mean[GPUDRAMActive], 1)
		power.Add(g.Mean[GPUPowerW], 1)
		used, total := g.Last[GPUVRAMUsed], g.Last[GPUVRAMTotal]
		if used.OK && total.OK && total.V > 0 &&
			(!win.VRAMTotal.OK || used.V/total.V > win.VRAMUsed.V/win.VRAMTotal.V) {
			win.VRAMUsed, win.VRAMTotal = used, total
			win.VRAMPeak = g.Peak[GPUVRAMUsed]
		}
	}
	win.GPUUtil, win.MemUtil, win.DRAMUtil = util.Mean(), mem.Mean(), dram.Mean()
	// With an unreadable GPU the sum would be too small.
	if power.Weight > 0 && power.Weight == float64(len(win.GPUs)) {
		win.Power = stat.Some(power.Sum)
	}
}

// Clone returns a copy that shares no memory with w.
func (w *Window) Clone() Window {
	c := *w
	c.Ranks = slices.Clone(w.Ranks)
	c.GPUs = slices.Clone(w.GPUs)
	for h := range c.Hist {
		c.Hist[h].Bounds = slices.Clone(w.Hist[h].Bounds)
		c.Hist[h].Counts = slices.Clone(w.Hist[h].Counts)
	}
	return c
}
