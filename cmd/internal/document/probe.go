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
	doc := struct {
		Schema  string                `json:"schema"`
		Kind    capture.Kind          `json:"kind"`
		Rooftop version               `json:"rooftop"`
		Started time.Time             `json:"started"`
		Length  time.Duration         `json:"duration_s"`
		Ended   string                `json:"ended" absent:""`
		Period  time.Duration         `json:"period_s"`
		Target  engine.Target         `json:"target"`
		Request *capture.RequestSetup `json:"request"`
		Figures any                   `json:"figures"`
		Missing []engine.Missing      `json:"missing"`
		Notes   []string              `json:"notes"`
		Capture Object                `json:"capture" layout:"line"`
	}{
		ProbeSchema, c.Kind, version{r.Setup.Version}, c.Wall, c.Span(), c.Ended, c.Period, r.Setup.Target, r.Setup.Request,
		nil, c.Missing, c.Notes, samplesOf(c),
	}
	if r.Summary != nil {
		doc.Figures = figuresOf(r.Summary)
	}
	return Write(w, &doc)
}

type version struct {
	Version string `json:"version"`
}

// nullIfZero returns v, nil for its zero value.
func nullIfZero[T comparable](v T) any {
	if v == *new(T) {
		return nil
	}
	return v
}

// secondsOrNull returns a duration in seconds, nil for none.
func secondsOrNull(d time.Duration) any { return nullIfZero(d.Seconds()) }

// listOf returns each element of a list as an object.
func listOf[T any](list []T, object func(*T) Object) []Object {
	out := make([]Object, len(list))
	for i := range list {
		out[i] = object(&list[i])
	}
	return out
}

// figuresOf returns the figures of a capture. Quantities are keyed by their names.
func figuresOf(s *capture.Summary) Object {
	derived := Object{}
	for _, x := range s.Derived {
		derived = append(derived, Member{x.Name, x.Quantity.Finite()})
	}
	return Object{
		{"span_s", s.Span.Seconds()}, {"quantiles", "nearest rank"}, {"requests", s.Requests}, {"tree", s.Tree},
		{"gpus", listOf(s.GPUs, gpuUsage)}, {"energy", s.Energy}, {"derived", derived},
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
	o := Object{{"begin_s", c.Begin.Seconds()}, {"end_s", c.End.Seconds()}, {"pages_from", c.PagesFrom}}
	if c.Counting != "" {
		o = append(o, Member{"tokens_counted", c.Counting})
	}
	return append(o,
		Member{"requests", listOf(c.Requests, requestOf)},
		Member{"tree", treeOf(&c.Tree)},
		Member{"gpus", Object{
			{"from", g.From}, {"how", g.How}, {"reason", nullIfZero(g.Why)}, {"averaging_s", g.Averaging.Seconds()}, {"instant_power", g.InstantPower},
			{"at_s", moments(g.Readings, func(r *engine.GPUReading) time.Duration { return r.T })},
			{"took_s", moments(g.Readings, func(r *engine.GPUReading) time.Duration { return r.Took })},
			{"devices", devices(g.Readings)},
		}},
		Member{"pages", Object{
			{"at_s", moments(pages, func(p *capture.PageSample) time.Duration { return p.At })},
			{"took_s", moments(pages, func(p *capture.PageSample) time.Duration { return p.Took })},
			{"errors", sparse(pages, func(p *capture.PageSample) string { return p.Error })},
			{"fields", pageFields(pages)},
		}},
	)
}

// requestOf returns one request.
func requestOf(r *capture.Request) Object {
	return Object{
		{"id", r.ID}, {"lane", r.Lane}, {"sent_s", r.Sent.Seconds()}, {"connect_s", r.Connect.Seconds()}, {"reused", r.Reused},
		{"written_s", secondsOrNull(r.Written)}, {"answered_s", secondsOrNull(r.Answered)}, {"chunks", chunks(r.Chunks)}, {"end_s", r.End.Seconds()},
		{"status", nullIfZero(r.Status)}, {"finish_reason", nullIfZero(r.Finish)}, {"error", nullIfZero(r.Error)},
		{"prompt_tokens", r.PromptTokens}, {"cached_tokens", r.CachedTokens}, {"output_tokens", r.OutputTokens},
		{"reasoning_tokens", r.ReasoningTokens}, {"prefill_s", r.PrefillSeconds}, {"decode_s", r.DecodeSeconds},
		{"text", nullIfZero(r.Text)}, {"notes", r.Notes},
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
		{"root_pid", t.Root}, {"how", t.How}, {"reason", nullIfZero(t.Why)}, {"cpus", t.CPUs}, {"listener", listener},
		{"at_s", moments(t.Samples, func(s *sample) time.Duration { return s.At })},
		{"took_s", moments(t.Samples, func(s *sample) time.Duration { return s.Took })},
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
		left = p.Left.Seconds()
	}
	return Object{
		{"pid", p.PID}, {"ppid", p.PPID}, {"start_ticks", p.Ticks}, {"comm", p.Comm}, {"title", p.Title},
		{"role", p.Role}, {"joined_s", p.Joined.Seconds()}, {"left_s", left}, {"earlier", p.Earlier},
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
		{"at_s", moments(list, func(s *sample) time.Duration { return s.At })},
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
			{"throttle_mask", column(rows[i], func(g *engine.GPU) mask { return mask{g.Throttle, g.ThrottleOK} })},
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

// mask is an optional set of bits.
type mask struct {
	bits uint64
	ok   bool
}

// Document implements [Documenter].
func (m mask) Document() any {
	if !m.ok {
		return nil
	}
	return m.bits
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
