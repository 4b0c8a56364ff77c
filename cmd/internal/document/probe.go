package document

import (
	"io"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// ProbeSchema is the schema of the document of a capture.
const ProbeSchema = "rooftop.probe/v1"

// WriteProbe writes a capture as one rooftop.probe/v1 object, with indented figures and the samples in one
// line. Times keep their precision; call Capture.Round before to get a small file.
func WriteProbe(w io.Writer, r *capture.Record) error {
	c := r.Capture
	var figures any
	if r.Summary != nil {
		figures = figuresOf(r.Summary)
	}
	return Write(w, Object{
		{"schema", ProbeSchema},
		{"kind", c.Kind},
		{"rooftop", program{r.Setup.Version}},
		{"started", c.Wall},
		{"duration_s", c.Span()},
		{"ended", orNull(c.Ended)},
		{"period_s", c.Period},
		{"target", r.Setup.Target},
		{"request", r.Setup.Request},
		{"figures", figures},
		{"missing", c.Missing},
		{"notes", c.Notes},
	}, Member{"capture", samplesOf(c)})
}

// figuresOf returns the figures of a capture. Quantities are keyed by their names.
func figuresOf(s *capture.Summary) Object {
	derived := Object{}
	for _, x := range s.Derived {
		derived = append(derived, Member{x.Name, x.Quantity.Finite()})
	}
	return Object{
		{"span_s", s.Span}, {"quantiles", "nearest rank"}, {"requests", s.Requests}, {"tree", s.Tree},
		{"gpus", each(s.GPUs, gpuUsage)}, {"energy", s.Energy}, {"derived", derived},
		{"sizing", s.Sizing}, {"warnings", s.Warnings},
	}
}

// gpuUsage returns the usage of one GPU. A field that was not read has a reason.
func gpuUsage(g *capture.GPUUsage) Object {
	fields := Object{}
	for _, f := range engine.GPUFields() {
		row := g.Fields[f]
		if row.Reason == "" && !row.Mean.Finite().OK && !row.Peak.Finite().OK {
			row.Reason = capture.NotRead
		}
		fields = append(fields, Member{f.Key(), row})
	}
	reasons := Object{{"value", nil}, {"mask", nil}, {"reason", capture.NotRead}}
	if g.ThrottleOK {
		reasons = Object{{"value", catalog.ThrottleKeys(g.Throttle)}, {"mask", g.Throttle}}
	}
	return Object{{"index", g.Index}, {"name", g.Name}, {"uuid", g.UUID}, {"fields", fields}, {"throttle_reasons", reasons}, {"energy", g.Energy}}
}

// samplesOf returns the samples of a capture as columns.
func samplesOf(c *capture.Capture) Object {
	g, pages := &c.GPUs, c.Pages
	o := Object{{"begin_s", c.Begin}, {"end_s", c.End}, {"pages_from", c.PagesFrom}}
	if c.Counting != "" {
		o = append(o, Member{"tokens_counted", c.Counting})
	}
	return append(o,
		Member{"requests", each(c.Requests, requestOf)},
		Member{"tree", treeOf(&c.Tree)},
		Member{"gpus", Object{
			{"from", g.From}, {"how", g.How}, {"reason", orNull(g.Why)}, {"averaging_s", g.Averaging}, {"instant_power", g.InstantPower},
			{"at_s", each(g.Readings, func(r *engine.GPUReading) time.Duration { return r.T })},
			{"took_s", each(g.Readings, func(r *engine.GPUReading) time.Duration { return r.Took })},
			{"devices", devices(g.Readings)},
		}},
		Member{"pages", Object{
			{"at_s", each(pages, func(p *capture.PageSample) time.Duration { return p.At })},
			{"took_s", each(pages, func(p *capture.PageSample) time.Duration { return p.Took })},
			{"errors", sparse(pages, func(p *capture.PageSample) string { return p.Error })},
			{"fields", pageFields(pages)},
		}},
	)
}

// requestOf returns one request.
func requestOf(r *capture.Request) Object {
	return Object{
		{"id", r.ID}, {"lane", r.Lane}, {"sent_s", r.Sent}, {"connect_s", r.Connect}, {"reused", r.Reused},
		{"written_s", orNull(r.Written)}, {"answered_s", orNull(r.Answered)}, {"chunks", chunks(r.Chunks)}, {"end_s", r.End},
		{"status", orNull(r.Status)}, {"finish_reason", orNull(r.Finish)}, {"error", orNull(r.Error)},
		{"prompt_tokens", r.PromptTokens}, {"cached_tokens", r.CachedTokens}, {"output_tokens", r.OutputTokens},
		{"reasoning_tokens", r.ReasoningTokens}, {"prefill_s", r.PrefillSeconds}, {"decode_s", r.DecodeSeconds},
		{"text", orNull(r.Text)}, {"notes", r.Notes},
	}
}

// chunkKinds are the names of the chunk kinds.
var chunkKinds = [...]string{capture.Text: "text", capture.Reasoning: "reasoning", capture.ToolCall: "tool_call", capture.Empty: "empty"}

type chunkColumns struct {
	At    []time.Duration `json:"at_s"`
	Bytes []int           `json:"bytes"`
	Kinds []kindRun       `json:"kinds"`
}

// kindRun is a number of consecutive chunks of one kind.
type kindRun struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
}

// chunks returns the chunks of a request as columns.
func chunks(list []capture.Chunk) chunkColumns {
	var out chunkColumns
	for _, k := range list {
		out.At, out.Bytes = append(out.At, k.At), append(out.Bytes, k.Bytes)
		name := chunkKinds[min(int(k.Kind), len(chunkKinds)-1)]
		if n := len(out.Kinds); n > 0 && out.Kinds[n-1].Kind == name {
			out.Kinds[n-1].Count++
			continue
		}
		out.Kinds = append(out.Kinds, kindRun{name, 1})
	}
	return out
}

// treeOf returns a process tree.
func treeOf(t *capture.Tree) Object {
	type sample = capture.TreeSample
	var listener any
	if t.Listener != (capture.Listener{}) {
		listener = Object{{"pid", t.Listener.PID}, {"comm", t.Listener.Comm}, {"port", t.Listener.Port}}
	}
	return Object{
		{"root_pid", t.Root}, {"how", t.How}, {"reason", orNull(t.Why)}, {"cpus", t.CPUs}, {"listener", listener},
		{"at_s", each(t.Samples, func(s *sample) time.Duration { return s.At })},
		{"took_s", each(t.Samples, func(s *sample) time.Duration { return s.Took })},
		{"partial", flags(t.Samples, func(s *sample) bool { return s.Partial })},
		{"walked", flags(t.Samples, func(s *sample) bool { return s.Walked })},
		{"errors", sparse(t.Samples, func(s *sample) string { return s.Error })},
		{"processes", processes(t)}, {"cgroups", cgroups(t.Cgroups)},
	}
}

// processes returns the processes of a tree, each with its samples as columns.
func processes(t *capture.Tree) []Object {
	rows := make([]table[capture.ProcessSample], len(t.Processes))
	for i := range t.Samples {
		list := t.Samples[i].Processes
		for j := range list {
			n := list[j].Process
			if n < 0 || n >= len(rows) || len(rows[n]) > 0 && rows[n][len(rows[n])-1].sample == i {
				continue // unknown process, or a duplicate in the same sample
			}
			rows[n] = append(rows[n], row[capture.ProcessSample]{i, &list[j]})
		}
	}
	out := []Object{}
	for i := range t.Processes {
		out = append(out, slices.Concat(processOf(&t.Processes[i]), Object{{"present", presence(rows[i])}}, processColumns(rows[i])))
	}
	return out
}

// processOf returns the constant properties of a process.
func processOf(p *capture.Process) Object {
	var left any
	if p.Gone {
		left = p.Left
	}
	return Object{
		{"pid", p.PID}, {"ppid", p.PPID}, {"start_ticks", p.Ticks}, {"comm", p.Comm}, {"title", p.Title},
		{"role", p.Role}, {"joined_s", p.Joined}, {"left_s", left}, {"earlier", p.Earlier},
	}
}

// processColumns returns the samples of a process.
func processColumns(rows table[capture.ProcessSample]) Object {
	type sample = capture.ProcessSample
	return Object{
		{"parent", column(rows, func(s *sample) int { return s.Parent })},
		{"cpu_s", column(rows, func(s *sample) float64 { return s.CPU.Seconds() })},
		{"reaped_cpu_s", column(rows, func(s *sample) float64 { return s.Reaped.Seconds() })},
		{"rss_bytes", column(rows, func(s *sample) int64 { return s.RSSBytes })},
		{"threads", column(rows, func(s *sample) int { return s.Threads })},
		{"run_wait_s", column(rows, func(s *sample) stat.Opt { return s.RunWaitSeconds })},
	}
}

// cgroups returns the samples of a control group as columns.
func cgroups(list []capture.CgroupSample) Object {
	type sample = capture.CgroupSample
	var rows table[sample]
	for i := range list {
		rows = append(rows, row[sample]{i, &list[i]})
	}
	return Object{
		{"at_s", each(list, func(s *sample) time.Duration { return s.At })},
		{"path", column(rows, func(s *sample) string { return s.Path })},
		{"periods", column(rows, func(s *sample) stat.Opt { return s.Periods })},
		{"throttled_periods", column(rows, func(s *sample) stat.Opt { return s.ThrottledPeriods })},
		{"throttled_s", column(rows, func(s *sample) stat.Opt { return s.ThrottledSeconds })},
		{"cpu_limit_cores", column(rows, func(s *sample) stat.Opt { return s.CPULimitCores })},
	}
}

// devices returns the GPUs in readings, each with its readings as columns.
func devices(readings []engine.GPUReading) []Object {
	list, rows := deviceRows(readings)
	out := []Object{}
	for i, d := range list {
		fields := map[string]any{}
		for _, f := range engine.GPUFields() {
			if c := knownSteps(rows[i], func(g *engine.GPU) stat.Opt { return g.Fields[f] }); len(c.Value) > 0 {
				fields[f.Key()] = c
			}
		}
		out = append(out, Object{
			{"index", d.Index}, {"name", d.Name}, {"uuid", d.UUID}, {"present", presence(rows[i])}, {"fields", fields},
			{"throttle_mask", column(rows[i], throttleMask)},
		})
	}
	return out
}

// deviceRows returns the devices in readings by first appearance, each with its rows.
func deviceRows(readings []engine.GPUReading) (list []*engine.GPU, rows []table[engine.GPU]) {
	for i := range readings {
		for j := range readings[i].Devices {
			g := &readings[i].Devices[j]
			at := slices.IndexFunc(list, func(k *engine.GPU) bool { return k.Index == g.Index && k.Name == g.Name && k.UUID == g.UUID })
			if at < 0 {
				at, list, rows = len(list), append(list, g), append(rows, nil)
			}
			if n := len(rows[at]); n == 0 || rows[at][n-1].sample != i {
				rows[at] = append(rows[at], row[engine.GPU]{i, g})
			}
		}
	}
	return list, rows
}

// throttleMask returns the reasons for which a GPU is throttled, nil if unknown.
func throttleMask(g *engine.GPU) any {
	if !g.ThrottleOK {
		return nil
	}
	return g.Throttle
}

// pageFields returns a column, with a value for each page, for every field that some page has.
func pageFields(pages []capture.PageSample) map[string][]stat.Opt {
	fields := map[string][]stat.Opt{}
	for i := range pages {
		for name, v := range pages[i].Fields() {
			if !v.Finite().OK {
				continue
			}
			if fields[name] == nil {
				fields[name] = make([]stat.Opt, len(pages))
			}
			fields[name][i] = *v
		}
	}
	return fields
}
