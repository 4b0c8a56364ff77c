package engine

import (
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Window geometry: nine polls 250 ms apart share their edges, so a window spans
// eight gaps, 2.0 s. With slow pages it is at least that long and has at least
// three polls (decisions.md 14).
const (
	PollInterval   = 250 * time.Millisecond
	WindowLength   = 2 * time.Second
	WindowMinPolls = 3
	// windowSlack lets a poll that came a little early still close its window.
	windowSlack = PollInterval / 2
	// maxSkew is how far page and GPU may be read apart before rules that join
	// both are switched off.
	maxSkew = time.Second
)

// Windower cuts a stream of samples into windows. The zero value is ready. It
// allocates only while its buffers grow: at a steady number of ranks, GPUs and
// buckets a sample costs no memory.
type Windower struct {
	win     Window
	open    bool
	start   time.Duration // tick at which the window began
	edge    Sample        // the poll that closed the last window; it opens the next
	first   *Page
	last    *Page
	sums    [numMeans]meanSum
	running []float64 // of the polls of the window
	ranks   []rankSums
	gpus    []gpuSums
	skewed  bool

	// Reaching over windows: when requests were last seen to move.
	previous *Page
	moved    time.Duration
	broken   bool // a scrape failed since the last page: how long nothing moved is unknown
	longest  time.Duration
	index    int
}

type meanSum struct {
	sum float64
	n   int
}

func (m *meanSum) add(v stat.Opt) {
	if v.OK {
		m.sum += v.V
		m.n++
	}
}

func (m *meanSum) mean() stat.Opt {
	if m.n == 0 {
		return stat.None
	}
	return stat.Some(m.sum / float64(m.n))
}

const (
	meanRunning = iota
	meanWaiting
	meanDeferred
	meanSwapped
	meanKV
	meanCPUKV
	numMeans
)

// median returns the middle of values, the lower one of two; it sorts them.
func median(values []float64) stat.Opt {
	if len(values) == 0 {
		return stat.None
	}
	slices.Sort(values)
	return stat.Some(values[(len(values)-1)/2])
}

type rankSums struct {
	running, waiting meanSum
	first, last      Rank
}

type gpuSums struct{ mean [NumGPUFields]meanSum }

// Add takes one sample. It returns the window that the sample closed, or nil.
// The window is reused: it is valid until the next call, Clone keeps it.
func (w *Windower) Add(s *Sample) *Window {
	if !w.open {
		w.open = true
		w.carry(s.T)
	}
	w.win.Missed += s.Missed
	w.addPage(s)
	w.addGPU(s)
	if s.T-w.start < WindowLength-windowSlack || w.win.Polls+w.win.Failed < WindowMinPolls {
		return nil
	}
	w.edge, w.edge.Missed = *s, 0
	return w.close()
}

// Flush closes what is left at the end of a run. It returns nil where that is
// less than half a window, too little to weigh like the others, and no scrape
// failed in it.
func (w *Windower) Flush() *Window {
	failed := w.win.Failed > 0 // a server that died must not drop out of the record
	if !w.open || !failed && (w.first == nil || w.last.T-w.first.T < WindowLength/2 || w.win.Polls < WindowMinPolls) {
		return nil
	}
	w.edge = Sample{}
	return w.close()
}

// begin empties the window and keeps its buffers.
func (w *Windower) begin(at time.Duration) {
	ranks, gpus, hist := w.win.Ranks[:0], w.win.GPUs[:0], w.win.Hist
	for i := range hist {
		hist[i].Reset()
	}
	w.win = Window{Index: w.index, Ranks: ranks, GPUs: gpus, Hist: hist}
	w.ranks, w.gpus = w.ranks[:0], w.gpus[:0]
	w.sums = [numMeans]meanSum{}
	w.running = w.running[:0]
	w.first, w.last, w.skewed = nil, nil, false
	w.start = at
}

// carry begins a window with the poll that closed the one before it, or afresh
// where there was none or it failed.
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
		w.broken = true
		return
	}
	if w.previous != nil && Restarted(w.previous, p) {
		// Inside the window its deltas are lost; in a gap before its first page
		// they are whole.
		if w.last != nil {
			w.win.Restarted = true
		} else {
			w.win.AfterRestart = true
		}
	}
	w.progress(p)
	if w.first == nil {
		w.first = p
	}
	w.last = p
	win := &w.win
	win.Polls++
	running, waiting := p.Gauges[GaugeRunning], p.Gauges[GaugeWaiting]
	w.sums[meanRunning].add(running)
	if running.OK {
		w.running = append(w.running, running.V)
	}
	w.sums[meanWaiting].add(waiting)
	w.sums[meanDeferred].add(p.Gauges[GaugeWaitingDeferred])
	w.sums[meanSwapped].add(p.Gauges[GaugeSwapped])
	w.sums[meanKV].add(p.kvUsage())
	w.sums[meanCPUKV].add(p.Gauges[GaugeCPUKVUsage])
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

// progress follows how long requests have been in without any counter moving.
// Idle and sleeping servers do not stall; after a failed scrape nobody knows,
// so the clock starts anew.
func (w *Windower) progress(p *Page) {
	previous := w.previous
	w.previous = p
	busy := p.Gauges[GaugeRunning].Or(0)+p.Gauges[GaugeWaiting].Or(0) > 0 && p.Gauges[GaugeAsleep].Or(0) == 0
	switch {
	case previous == nil || w.broken || !busy || Restarted(previous, p):
		w.moved = p.T
	case advanced(previous, p):
		w.longest = max(w.longest, p.T-w.moved)
		w.moved = p.T
		w.win.Progress = true
	}
	w.broken = false
}

// advanced says whether any counter that an engine step moves differs.
func advanced(a, b *Page) bool {
	for _, c := range [...]Counter{CounterGenerationTokens, CounterPromptTokens, CounterPreemptions, CounterRequestSuccess} {
		if a.Counters[c] != b.Counters[c] {
			return true
		}
	}
	return a.Hists[HistIterationTokens].Count != b.Hists[HistIterationTokens].Count
}

func (w *Windower) addRanks(p *Page) {
	if len(p.Ranks) != len(w.ranks) {
		if len(w.ranks) > 0 && w.win.Polls > 1 {
			// The set of ranks changed: what was summed belongs to other ones.
			w.ranks = w.ranks[:0]
		}
		for i := range p.Ranks {
			w.ranks = append(w.ranks, rankSums{first: p.Ranks[i]})
			w.win.Ranks = append(w.win.Ranks[:i], RankWindow{Name: p.Ranks[i].Name})
		}
	}
	for i := range p.Ranks {
		r := &w.ranks[i]
		r.last = p.Ranks[i]
		r.running.add(p.Ranks[i].Gauges[GaugeRunning])
		r.waiting.add(p.Ranks[i].Gauges[GaugeWaiting])
		out := &w.win.Ranks[i]
		out.KVPeak = out.KVPeak.Max(p.Ranks[i].Gauges[GaugeKVUsage])
		if out.Untouched = p.Ranks[i].Untouched(p.Ranks); out.Untouched {
			zero := stat.Some(0)
			r.running.add(zero)
			r.waiting.add(zero)
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
			w.gpus[i].mean[f].add(d.Fields[f])
			out.Peak[f] = out.Peak[f].Max(d.Fields[f])
		}
		if d.ThrottleOK {
			out.Throttle |= d.Throttle
			out.ThrottleOK = true
		}
	}
}

// close computes everything that needs the whole window.
func (w *Windower) close() *Window {
	win := &w.win
	w.open = false
	w.index++
	win.LongestStep = w.longest
	w.closeGPU()
	if w.first == nil {
		win.Start = w.start
		win.Why = "no scrape answered"
		return win
	}
	win.Start = w.first.T
	win.Duration = w.last.T - w.first.T
	win.Running = w.sums[meanRunning].mean()
	win.RunningMedian = median(w.running)
	win.Waiting = w.sums[meanWaiting].mean()
	win.Deferred = w.sums[meanDeferred].mean()
	win.Swapped = w.sums[meanSwapped].mean()
	win.KV = w.sums[meanKV].mean()
	win.CPUKV = w.sums[meanCPUKV].mean()
	win.KVLast = w.last.kvUsage()
	win.PrefixGauge = w.last.Gauges[GaugePrefixHitRate]
	win.Stall = w.last.T - w.moved
	win.Last = w.last.Counters
	win.HistNames = w.last.HistNames
	w.closeDeltas()
	w.closeRanks()
	win.CountedStep = countedStep(win)
	win.StepTime, win.StepTimeFrom = stepTime(win)
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
		out.Running, out.Waiting = r.running.mean(), r.waiting.mean()
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

// closeGPU makes the scalars over GPUs: power summed, utilisations averaged,
// memory that of the fullest GPU.
func (w *Windower) closeGPU() {
	win := &w.win
	win.Skewed = w.skewed
	var util, mem, dram, power meanSum
	for i := range win.GPUs {
		g := &win.GPUs[i]
		for f := range g.Mean {
			g.Mean[f] = w.gpus[i].mean[f].mean()
		}
		util.add(g.Mean[GPUUtil])
		win.GPUBusy = win.GPUBusy.Max(g.Mean[GPUUtil])
		mem.add(g.Mean[GPUMemUtil])
		dram.add(g.Mean[GPUDRAMActive])
		power.add(g.Mean[GPUPowerW])
		used, total := g.Last[GPUVRAMUsed], g.Last[GPUVRAMTotal]
		if used.OK && total.OK && total.V > 0 &&
			(!win.VRAMTotal.OK || used.V/total.V > win.VRAMUsed.V/win.VRAMTotal.V) {
			win.VRAMUsed, win.VRAMTotal = used, total
			win.VRAMPeak = g.Peak[GPUVRAMUsed]
		}
	}
	win.GPUUtil, win.MemUtil, win.DRAMUtil = util.mean(), mem.mean(), dram.mean()
	// A sum over GPUs of which one is unreadable would be too small.
	if power.n > 0 && power.n == len(win.GPUs) {
		win.Power = stat.Some(power.sum)
	}
}

// Clone returns a copy that shares no memory with w.
func (w *Window) Clone() Window {
	c := *w
	c.Ranks = append([]RankWindow(nil), w.Ranks...)
	c.GPUs = append([]GPUWindow(nil), w.GPUs...)
	for h := range c.Hist {
		c.Hist[h].Bounds = append([]float64(nil), w.Hist[h].Bounds...)
		c.Hist[h].Counts = append([]float64(nil), w.Hist[h].Counts...)
	}
	return c
}
