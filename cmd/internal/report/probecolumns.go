package report

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// toWire turns a capture into columns.
func toWire(c *capture.Capture) wireCapture {
	w := wireCapture{
		Begin: inSeconds(c.Begin), End: inSeconds(c.End), PagesFrom: c.PagesFrom, Counting: string(c.Counting),
		Requests: []wireRequest{}, Tree: treeWire(&c.Tree), GPUs: gpusWire(&c.GPUs), Pages: pagesWire(c.Pages),
	}
	for i := range c.Requests {
		w.Requests = append(w.Requests, requestWire(&c.Requests[i]))
	}
	return w
}

func inSeconds(t time.Duration) seconds { return seconds(t.Seconds()) }

// moment is a time since the origin, nil where it has not come.
func moment(t time.Duration) *seconds { return there(inSeconds(t)) }

// there is a value, nil where it is its type's zero.
func there[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func requestWire(r *capture.Request) wireRequest {
	chunks := wireChunks{At: []seconds{}, Bytes: []int{}, Kinds: []kindRun{}}
	for _, k := range r.Chunks {
		chunks.At, chunks.Bytes = append(chunks.At, inSeconds(k.At)), append(chunks.Bytes, k.Bytes)
		name := chunkKinds[min(int(k.Kind), len(chunkKinds)-1)]
		if n := len(chunks.Kinds); n > 0 && chunks.Kinds[n-1].Kind == name {
			chunks.Kinds[n-1].Count++
			continue
		}
		chunks.Kinds = append(chunks.Kinds, kindRun{name, 1})
	}
	return wireRequest{
		ID: r.ID, Lane: r.Lane, Sent: inSeconds(r.Sent), Connect: inSeconds(r.Connect), Reused: r.Reused,
		Written: moment(r.Written), Answered: moment(r.Answered), Chunks: chunks, End: inSeconds(r.End),
		Status: there(r.Status), Finish: there(r.Finish), Error: there(r.Error),
		PromptTokens: finite(r.PromptTokens), CachedTokens: finite(r.CachedTokens), OutputTokens: finite(r.OutputTokens),
		ReasoningTokens: finite(r.ReasoningTokens), PrefillSeconds: finite(r.PrefillSeconds), DecodeSeconds: finite(r.DecodeSeconds),
		Text: there(r.Text), Notes: append([]string{}, r.Notes...),
	}
}

func treeWire(t *capture.Tree) wireTree {
	w := wireTree{
		Root: t.Root, How: t.How, Why: there(t.Why), CPUs: t.CPUs, At: []seconds{}, Took: []seconds{}, Walked: sampleRuns{}, Partial: sampleRuns{}, Errors: []sampleError{},
		Processes: make([]wireProcess, len(t.Processes)), Cgroups: cgroupsWire(t.Cgroups),
	}
	if t.Listener != (capture.Listener{}) {
		w.Listener = &wireListener{t.Listener.PID, t.Listener.Comm, t.Listener.Port}
	}
	for i := range t.Processes {
		p := &t.Processes[i]
		w.Processes[i] = wireProcess{
			PID: p.PID, PPID: p.PPID, InnerPID: p.InnerPID, Ticks: p.Ticks, Comm: p.Comm, Title: p.Title, Role: p.Role,
			Joined: inSeconds(p.Joined), Earlier: p.Earlier, Present: sampleRuns{},
		}
		if p.Gone {
			left := inSeconds(p.Left)
			w.Processes[i].Left = &left
		}
	}
	for i := range t.Samples {
		s := &t.Samples[i]
		w.At, w.Took = append(w.At, inSeconds(s.At)), append(w.Took, inSeconds(s.Took))
		if s.Walked {
			w.Walked.add(i)
		}
		if s.Partial {
			w.Partial.add(i)
		}
		if s.Error != "" {
			w.Errors = append(w.Errors, sampleError{i, s.Error})
		}
		for j := range s.Processes {
			if n := s.Processes[j].Process; n >= 0 && n < len(w.Processes) {
				w.Processes[n].add(i, s.Processes[j])
			}
		}
	}
	return w
}

func (p *wireProcess) add(i int, s capture.ProcessSample) {
	if p.Present.has(i) {
		return
	}
	p.Present.add(i)
	p.Parent.add(i, s.Parent)
	p.CPU.add(i, inSeconds(s.CPU))
	p.Reaped.add(i, inSeconds(s.Reaped))
	p.RSS.add(i, s.RSSBytes)
	p.Threads.add(i, s.Threads)
	for _, c := range p.columns(&s) {
		c.column.add(i, finite(*c.value))
	}
}

func cgroupsWire(list []capture.CgroupSample) wireCgroups {
	w := wireCgroups{At: []seconds{}}
	for i, s := range list {
		w.At = append(w.At, inSeconds(s.At))
		w.Path.add(i, s.Path)
		w.Whole.add(i, s.Whole)
		for _, c := range w.columns(&s) {
			c.column.add(i, finite(*c.value))
		}
	}
	return w
}

func gpusWire(g *capture.GPUs) wireGPUs {
	w := wireGPUs{From: g.From, How: g.How, Why: there(g.Why), Averaging: inSeconds(g.Averaging), Instant: g.InstantPower, At: []seconds{}, Took: []seconds{}, Devices: []wireDevice{}}
	for i := range g.Readings {
		r := &g.Readings[i]
		w.At, w.Took = append(w.At, inSeconds(r.T)), append(w.Took, inSeconds(r.Took))
		for j := range r.Devices {
			w.device(&r.Devices[j]).add(i, &r.Devices[j])
		}
	}
	return w
}

// device returns the columns of a device.
func (w *wireGPUs) device(g *engine.GPU) *wireDevice {
	for i := range w.Devices {
		if w.Devices[i].is(g) {
			return &w.Devices[i]
		}
	}
	w.Devices = append(w.Devices, wireDevice{Index: g.Index, Name: g.Name, UUID: g.UUID, Present: sampleRuns{}, Fields: map[string]*steps[stat.Opt]{}})
	return &w.Devices[len(w.Devices)-1]
}

func (d *wireDevice) add(i int, g *engine.GPU) {
	if d.Present.has(i) {
		return
	}
	d.Present.add(i)
	d.Throttle.add(i, mask{g.Throttle, g.ThrottleOK})
	for _, r := range readings() {
		v := finite(g.Fields[r.field])
		column := d.Fields[r.name]
		if column == nil && v.OK {
			column = &steps[stat.Opt]{}
			d.Fields[r.name] = column
		}
		if column != nil {
			column.add(i, v)
		}
	}
}

func pagesWire(pages []capture.PageSample) wirePages {
	w := wirePages{At: []seconds{}, Took: []seconds{}, Errors: []sampleError{}, Fields: map[string][]stat.Opt{}}
	for i := range pages {
		p := &pages[i]
		w.At, w.Took = append(w.At, inSeconds(p.At)), append(w.Took, inSeconds(p.Took))
		if p.Error != "" {
			w.Errors = append(w.Errors, sampleError{i, p.Error})
		}
		for name, v := range pageFields(p) {
			if !finite(*v).OK {
				continue
			}
			if w.Fields[name] == nil {
				w.Fields[name] = make([]stat.Opt, len(pages))
			}
			w.Fields[name][i] = *v
		}
	}
	return w
}
