package report

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// tree turns the columns of a process tree back into samples.
func (w *wireTree) tree() (capture.Tree, error) {
	t := capture.Tree{Root: w.Root, How: w.How, Why: textOf(w.Why), CPUs: w.CPUs, Samples: make([]capture.TreeSample, len(w.At))}
	if len(w.Took) != len(w.At) {
		return t, fmt.Errorf("%d times and %d durations", len(w.At), len(w.Took))
	}
	for i := range t.Samples {
		t.Samples[i].At, t.Samples[i].Took = duration(w.At[i]), duration(w.Took[i])
	}
	if err := w.Partial.check(len(w.At)); err != nil {
		return t, fmt.Errorf("partial: %w", err)
	}
	if err := w.Walked.check(len(w.At)); err != nil {
		return t, fmt.Errorf("walked: %w", err)
	}
	if l := w.Listener; l != nil {
		t.Listener = capture.Listener{PID: l.PID, Comm: l.Comm, Port: l.Port}
	}
	for _, run := range w.Walked {
		for i := run[0]; i <= run[1]; i++ {
			t.Samples[i].Walked = true
		}
	}
	for _, run := range w.Partial {
		for i := run[0]; i <= run[1]; i++ {
			t.Samples[i].Partial = true
		}
	}
	for _, e := range w.Errors {
		if e.Sample < 0 || e.Sample >= len(t.Samples) {
			return t, fmt.Errorf("an error of sample %d of %d", e.Sample, len(t.Samples))
		}
		t.Samples[e.Sample].Error = e.Error
	}
	looks := 0
	for i := range w.Processes {
		p := &w.Processes[i]
		if looks += p.Present.most(); looks > mostLooks {
			return t, fmt.Errorf("there are more than %d samples of processes", mostLooks)
		}
		t.Processes = append(t.Processes, capture.Process{
			PID: p.PID, PPID: p.PPID, InnerPID: p.InnerPID, Ticks: p.Ticks, Comm: p.Comm, Title: p.Title, Role: p.Role,
			Joined: duration(p.Joined), Left: momentOf(p.Left), Gone: p.Left != nil, Earlier: p.Earlier,
		})
		if err := p.samples(i, t.Samples); err != nil {
			return t, fmt.Errorf("processes[%d]: %w", i, err)
		}
	}
	var err error
	if t.Cgroups, err = w.Cgroups.samples(); err != nil {
		return t, fmt.Errorf("cgroups: %w", err)
	}
	return t, nil
}

// mostLooks is how many samples of processes a document may hold, and of devices as
// many: more than two hours of sixty processes at 50 ms. A stretch of them is a few bytes, so
// that the size of a file says nothing of the memory that it asks for.
const mostLooks = 10_000_000

// bounded says that no list of moments is longer than that either.
func (w *wireCapture) bounded() error {
	if n := max(len(w.Tree.At), len(w.GPUs.At), len(w.Pages.At)); n > mostLooks {
		return fmt.Errorf("there are %d samples, more than %d", n, mostLooks)
	}
	return nil
}

// samples adds process n to the samples that have it.
func (p *wireProcess) samples(n int, samples []capture.TreeSample) error {
	if err := p.Present.check(len(samples)); err != nil {
		return err
	}
	parent, e0 := walk(p.Parent, len(samples))
	cpu, e1 := walk(p.CPU, len(samples))
	reaped, e2 := walk(p.Reaped, len(samples))
	rss, e3 := walk(p.RSS, len(samples))
	threads, e4 := walk(p.Threads, len(samples))
	var optional [8]*walker[stat.Opt]
	for i, c := range p.columns(&capture.ProcessSample{}) {
		w, err := walk(*c.column, len(samples))
		if err != nil {
			return err
		}
		optional[i] = w
	}
	for _, err := range []error{e0, e1, e2, e3, e4} {
		if err != nil {
			return err
		}
	}
	for _, run := range p.Present {
		for i := run[0]; i <= run[1]; i++ {
			s := capture.ProcessSample{Process: n, Parent: parent.at(i), CPU: duration(cpu.at(i)), Reaped: duration(reaped.at(i)), RSSBytes: rss.at(i), Threads: threads.at(i)}
			for j, c := range p.columns(&s) {
				*c.value = optional[j].at(i)
			}
			samples[i].Processes = append(samples[i].Processes, s)
		}
	}
	return nil
}

func (w *wireCgroups) samples() ([]capture.CgroupSample, error) {
	path, err := walk(w.Path, len(w.At))
	if err != nil {
		return nil, err
	}
	whole, err := walk(w.Whole, len(w.At))
	if err != nil {
		return nil, err
	}
	var optional [7]*walker[stat.Opt]
	for i, c := range w.columns(&capture.CgroupSample{}) {
		if optional[i], err = walk(*c.column, len(w.At)); err != nil {
			return nil, err
		}
	}
	out := make([]capture.CgroupSample, len(w.At))
	for i := range out {
		s := capture.CgroupSample{At: duration(w.At[i]), Path: path.at(i), Whole: whole.at(i)}
		for j, c := range w.columns(&s) {
			*c.value = optional[j].at(i)
		}
		out[i] = s
	}
	return out, nil
}

// gpus turns the columns of devices back into readings.
func (w *wireGPUs) gpus() (capture.GPUs, error) {
	g := capture.GPUs{From: w.From, How: w.How, Why: textOf(w.Why), Averaging: duration(w.Averaging), InstantPower: w.Instant, Readings: make([]engine.GPUReading, len(w.At))}
	if len(w.Took) != len(w.At) {
		return g, fmt.Errorf("%d times and %d durations", len(w.At), len(w.Took))
	}
	for i := range g.Readings {
		g.Readings[i].T, g.Readings[i].Took = duration(w.At[i]), duration(w.Took[i])
	}
	looks := 0
	for i := range w.Devices {
		if looks += w.Devices[i].Present.most(); looks > mostLooks {
			return g, fmt.Errorf("there are more than %d samples of devices", mostLooks)
		}
		if err := w.Devices[i].readings(g.Readings); err != nil {
			return g, fmt.Errorf("devices[%d]: %w", i, err)
		}
	}
	return g, nil
}

// readings adds the device to the readings that have it.
func (d *wireDevice) readings(list []engine.GPUReading) error {
	if err := d.Present.check(len(list)); err != nil {
		return err
	}
	throttle, err := walk(d.Throttle, len(list))
	if err != nil {
		return err
	}
	fields := map[engine.GPUField]*walker[stat.Opt]{}
	for _, r := range readings() {
		if column := d.Fields[r.name]; column != nil {
			if fields[r.field], err = walk(*column, len(list)); err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
		}
	}
	for _, run := range d.Present {
		for i := run[0]; i <= run[1]; i++ {
			g := engine.GPU{Index: d.Index, Name: d.Name, UUID: d.UUID}
			m := throttle.at(i)
			g.Throttle, g.ThrottleOK = m.bits, m.ok
			for field, column := range fields {
				g.Fields[field] = column.at(i)
			}
			list[i].Devices = append(list[i].Devices, g)
		}
	}
	return nil
}

// walker reads a column of steps in the order of its samples.
type walker[T comparable] struct {
	steps[T]
	next int // step after the one that holds
}

// at returns the value of sample i, which must not fall from call to call.
func (w *walker[T]) at(i int) (v T) {
	for w.next < len(w.From) && w.From[w.next] <= i {
		w.next++
	}
	if w.next > 0 {
		v = w.Value[w.next-1]
	}
	return v
}

// walk checks a column of n samples and returns its reader.
func walk[T comparable](s steps[T], n int) (*walker[T], error) {
	if len(s.From) != len(s.Value) {
		return nil, fmt.Errorf("%d places for %d values", len(s.From), len(s.Value))
	}
	if !risingBelow(s.From, n) {
		return nil, fmt.Errorf("places of a column do not rise within %d samples", n)
	}
	return &walker[T]{steps: s}, nil
}

func risingBelow(places []int, n int) bool {
	last := -1
	for _, p := range places {
		if p <= last || p >= n {
			return false
		}
		last = p
	}
	return true
}

// most is how many samples stretches name, in any order.
func (s sampleRuns) most() int {
	n := 0
	for _, run := range s {
		n += min(max(0, run[1]-run[0]+1), mostLooks+1)
	}
	return n
}

// check says whether stretches rise within n samples.
func (s sampleRuns) check(n int) error {
	last := -1
	for _, run := range s {
		if run[0] <= last || run[1] < run[0] || run[1] >= n {
			return fmt.Errorf("stretches of samples do not rise within %d", n)
		}
		last = run[1]
	}
	return nil
}
