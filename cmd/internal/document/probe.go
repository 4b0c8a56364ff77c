package document

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/throttle"
)

// ProbeSchema is the schema of the document of a capture.
const ProbeSchema = "rooftop.probe/v1"

// WriteProbe writes a capture as one rooftop.probe/v1 object, with indented figures and the samples in one
// line. ReadProbe returns the same capture. Times keep their precision; call Capture.Round before to get a
// small file.
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
		Capture bound                 `json:"capture" layout:"line"`
	}{
		ProbeSchema, c.Kind, version{r.Setup.Version}, c.Wall, c.Span(), c.Ended, c.Period, r.Setup.Target, r.Setup.Request,
		nil, c.Missing, c.Notes, bindCapture(c),
	}
	if r.Summary != nil {
		doc.Figures = bindSummary(r.Summary)
	}
	return Write(w, &doc)
}

type version struct {
	Version string `json:"version"`
}

// ReadProbe reads a document written by WriteProbe. Within a sample, processes and devices are in the order of
// their lists. It fails if the document is incomplete, has another schema, or is inconsistent.
func ReadProbe(r io.Reader) (*capture.Record, error) {
	c, s := &capture.Capture{}, &capture.Summary{}
	record := &capture.Record{Capture: c}
	var doc map[string]json.RawMessage
	if err := json.NewDecoder(r).Decode(&doc); err != nil {
		return nil, fmt.Errorf("read a probe: %w: give the whole file that --json wrote", err)
	}
	var schema string
	if _ = json.Unmarshal(doc["schema"], &schema); schema != ProbeSchema {
		return nil, fmt.Errorf("read a probe: the file is of schema %q, not %s: give one that rooftop probe --json wrote", schema, ProbeSchema)
	}
	figures := doc["figures"]
	if len(figures) > 0 && string(figures) != "null" {
		record.Summary = s
	}
	var by version
	for _, m := range []binding{
		{"kind", &c.Kind}, {"rooftop", &by}, {"started", &c.Wall}, {"ended", nullIfZero(&c.Ended)}, {"period_s", (*moment)(&c.Period)},
		{"target", &record.Setup.Target}, {"request", &record.Setup.Request}, {"missing", &c.Missing}, {"notes", &c.Notes},
		{"capture", bindCapture(c)}, {"figures", bindSummary(s)},
	} {
		raw, ok := doc[m.key]
		if !ok || m.key == "figures" && record.Summary == nil {
			continue
		}
		if err := decodeInto(raw, m.value); err != nil {
			return nil, fmt.Errorf("read a probe: %s: %w: the file was changed after it was written", m.key, err)
		}
	}
	if c.Kind != capture.Probe && c.Kind != capture.Observation {
		return nil, fmt.Errorf("read a probe: kind %q is neither %s nor %s: it was written by another version", c.Kind, capture.Probe, capture.Observation)
	}
	record.Setup.Version = by.Version
	return record, nil
}

// bindSummary binds the figures of a capture. Quantities are keyed by their names.
func bindSummary(s *capture.Summary) bound {
	quantiles := "nearest rank"
	return bound{
		{"span_s", (*moment)(&s.Span)}, {"quantiles", &quantiles}, {"requests", &s.Requests}, {"tree", &s.Tree},
		{"gpus", listOf(&s.GPUs, bindGPUUsage)}, {"energy", &s.Energy}, {"derived", quantities(&s.Derived)},
		{"sizing", &s.Sizing}, {"warnings", &s.Warnings},
	}
}

// bindGPUUsage binds the usage of one GPU.
func bindGPUUsage(g *capture.GPUUsage) bound {
	var fields bound
	for _, f := range engine.GPUFields() {
		row := &g.Fields[f]
		if row.Reason == "" && !row.Mean.Finite().OK && !row.Peak.Finite().OK {
			row = &capture.Row{Mean: row.Mean, Peak: row.Peak, Samples: row.Samples, Reason: capture.NotRead}
		}
		fields = append(fields, binding{f.Key(), row})
	}
	// The reason for an unread field is written, and read back into the GPU.
	readings := codec{fields.Document, decoded(func(rows map[string]capture.Row) error {
		for _, f := range engine.GPUFields() {
			g.Fields[f] = rows[f.Key()]
		}
		return nil
	})}
	return bound{{"index", &g.Index}, {"name", &g.Name}, {"uuid", &g.UUID}, {"fields", readings}, {"throttle_reasons", throttleReasons(g)}, {"energy", &g.Energy}}
}

// throttleReasons binds the throttle mask of a GPU, encoded with the names of its bits.
func throttleReasons(g *capture.GPUUsage) codec {
	type reasons struct {
		Mask *uint64 `json:"mask"`
	}
	return codec{func() any {
		if !g.ThrottleOK {
			return Object{{"value", nil}, {"mask", nil}, {"reason", capture.NotRead}}
		}
		return Object{{"value", throttle.Keys(g.Throttle)}, {"mask", g.Throttle}}
	}, decoded(func(r reasons) error {
		if r.Mask != nil {
			g.Throttle, g.ThrottleOK = *r.Mask, true
		}
		return nil
	})}
}

// bindCapture binds the samples of a capture as columns.
func bindCapture(c *capture.Capture) bound {
	g, pages := &c.GPUs, &c.Pages
	b := bound{{"begin_s", (*moment)(&c.Begin)}, {"end_s", (*moment)(&c.End)}, {"pages_from", &c.PagesFrom}}
	return append(b,
		binding{"tokens_counted", (*omitted)(&c.Counting)},
		binding{"requests", listOf(&c.Requests, bindRequest)},
		binding{"tree", bindTree(&c.Tree)},
		binding{"gpus", bound{
			{"from", &g.From}, {"how", &g.How}, {"reason", nullIfZero(&g.Why)}, {"averaging_s", (*moment)(&g.Averaging)}, {"instant_power", &g.InstantPower},
			{"at_s", moments(&g.Readings, func(r *engine.GPUReading) *time.Duration { return &r.T })},
			{"took_s", moments(&g.Readings, func(r *engine.GPUReading) *time.Duration { return &r.Took })},
			{"devices", devices(g)},
		}},
		binding{"pages", bound{
			{"at_s", moments(pages, func(p *capture.PageSample) *time.Duration { return &p.At })},
			{"took_s", moments(pages, func(p *capture.PageSample) *time.Duration { return &p.Took })},
			{"errors", sparse(pages, func(p *capture.PageSample) *string { return &p.Error })},
			{"fields", pageFields(pages)},
		}},
	)
}

// bindRequest binds one request.
func bindRequest(r *capture.Request) bound {
	return bound{
		{"id", &r.ID}, {"lane", &r.Lane}, {"sent_s", (*moment)(&r.Sent)}, {"connect_s", (*moment)(&r.Connect)}, {"reused", &r.Reused},
		{"written_s", nullIfZero((*moment)(&r.Written))}, {"answered_s", nullIfZero((*moment)(&r.Answered))}, {"chunks", chunks(&r.Chunks)}, {"end_s", (*moment)(&r.End)},
		{"status", nullIfZero(&r.Status)}, {"finish_reason", nullIfZero(&r.Finish)}, {"error", nullIfZero(&r.Error)},
		{"prompt_tokens", &r.PromptTokens}, {"cached_tokens", &r.CachedTokens}, {"output_tokens", &r.OutputTokens},
		{"reasoning_tokens", &r.ReasoningTokens}, {"prefill_s", &r.PrefillSeconds}, {"decode_s", &r.DecodeSeconds},
		{"text", nullIfZero(&r.Text)}, {"notes", &r.Notes},
	}
}

// chunkKinds are the names of the chunk kinds.
var chunkKinds = [...]string{capture.Text: "text", capture.Reasoning: "reasoning", capture.ToolCall: "tool_call", capture.Empty: "empty"}

type chunkColumns struct {
	At    []moment  `json:"at_s"`
	Bytes []int     `json:"bytes"`
	Kinds []kindRun `json:"kinds"`
}

// kindRun is a number of consecutive chunks of one kind.
type kindRun struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
}

// chunks binds the chunks of a request as columns.
func chunks(list *[]capture.Chunk) codec {
	return codec{func() any {
		var out chunkColumns
		for _, k := range *list {
			out.At, out.Bytes = append(out.At, moment(k.At)), append(out.Bytes, k.Bytes)
			name := chunkKinds[min(int(k.Kind), len(chunkKinds)-1)]
			if n := len(out.Kinds); n > 0 && out.Kinds[n-1].Kind == name {
				out.Kinds[n-1].Count++
				continue
			}
			out.Kinds = append(out.Kinds, kindRun{name, 1})
		}
		return out
	}, decoded(func(in chunkColumns) error {
		if len(in.Bytes) != len(in.At) {
			return fmt.Errorf("%d times of chunks and %d sizes", len(in.At), len(in.Bytes))
		}
		for _, run := range in.Kinds {
			kind, n := slices.Index(chunkKinds[:], run.Kind), len(*list)
			if kind < 0 || run.Count < 0 || run.Count > len(in.At)-n {
				return fmt.Errorf("%d chunks of kind %q do not fit into %d", run.Count, run.Kind, len(in.At))
			}
			for i := n; i < n+run.Count; i++ {
				*list = append(*list, capture.Chunk{At: time.Duration(in.At[i]), Kind: capture.ChunkKind(kind), Bytes: in.Bytes[i]})
			}
		}
		if len(*list) != len(in.At) {
			return fmt.Errorf("%d of %d chunks have a kind", len(*list), len(in.At))
		}
		return nil
	})}
}

// bindTree binds a process tree.
func bindTree(t *capture.Tree) bound {
	type sample = capture.TreeSample
	listener := bound{{"pid", &t.Listener.PID}, {"comm", &t.Listener.Comm}, {"port", &t.Listener.Port}}
	return bound{
		{"root_pid", &t.Root}, {"how", &t.How}, {"reason", nullIfZero(&t.Why)}, {"cpus", &t.CPUs}, {"listener", nullUnless(func() bool { return t.Listener != capture.Listener{} }, listener)},
		{"at_s", moments(&t.Samples, func(s *sample) *time.Duration { return &s.At })},
		{"took_s", moments(&t.Samples, func(s *sample) *time.Duration { return &s.Took })},
		{"partial", flags(&t.Samples, func(s *sample) *bool { return &s.Partial })},
		{"walked", flags(&t.Samples, func(s *sample) *bool { return &s.Walked })},
		{"errors", sparse(&t.Samples, func(s *sample) *string { return &s.Error })},
		{"processes", processes(t)}, {"cgroups", cgroups(&t.Cgroups)},
	}
}

// processes binds the processes of a tree, each with its samples as columns.
func processes(t *capture.Tree) codec {
	type sample = capture.ProcessSample
	var rows []table[sample]
	read := elements(func(n int) {
		if n > 0 {
			t.Processes, rows = make([]capture.Process, n), make([]table[sample], n)
		}
	}, func(i int, raw []byte) error {
		present := binding{"present", presence(&rows[i], len(t.Samples))}
		if err := append(bindProcess(&t.Processes[i]), present).UnmarshalJSON(raw); err != nil {
			return err
		}
		return bindProcessColumns(rows[i]).UnmarshalJSON(raw)
	})
	return codec{func() any {
		rows := make([]table[sample], len(t.Processes))
		for i := range t.Samples {
			list := t.Samples[i].Processes
			for j := range list {
				n := list[j].Process
				if n < 0 || n >= len(rows) || len(rows[n]) > 0 && rows[n][len(rows[n])-1].sample == i {
					continue // unknown process, or a duplicate in the same sample
				}
				rows[n] = append(rows[n], row[sample]{i, &list[j]})
			}
		}
		out := []any{}
		for i := range t.Processes {
			out = append(out, slices.Concat(bindProcess(&t.Processes[i]), bound{{"present", presence(&rows[i], 0)}}, bindProcessColumns(rows[i])))
		}
		return out
	}, func(raw []byte) error {
		if err := boundRows(raw, len(t.Samples)); err != nil {
			return err
		}
		if err := read(raw); err != nil {
			return err
		}
		placeProcesses(t.Samples, rows)
		return nil
	}}
}

// placeProcesses sets the processes of samples from the rows of each process.
func placeProcesses(samples []capture.TreeSample, rows []table[capture.ProcessSample]) {
	counts := make([]int, len(samples))
	for _, process := range rows {
		for _, r := range process {
			counts[r.sample]++
		}
	}
	for i, process := range rows {
		for _, r := range process {
			s := &samples[r.sample]
			if s.Processes == nil {
				s.Processes = make([]capture.ProcessSample, 0, counts[r.sample])
			}
			r.value.Process = i
			s.Processes = append(s.Processes, *r.value)
		}
	}
}

// bindProcess binds the constant properties of a process.
func bindProcess(p *capture.Process) bound {
	left := codec{moment(p.Left).Document, func(raw []byte) error {
		p.Gone = true
		return (*moment)(&p.Left).UnmarshalJSON(raw)
	}}
	return bound{
		{"pid", &p.PID}, {"ppid", &p.PPID}, {"inner_pid", &p.InnerPID}, {"start_ticks", &p.Ticks}, {"comm", &p.Comm}, {"title", &p.Title},
		{"role", &p.Role}, {"joined_s", (*moment)(&p.Joined)}, {"left_s", nullUnless(func() bool { return p.Gone }, left)}, {"earlier", &p.Earlier},
	}
}

// bindProcessColumns binds the samples of a process.
func bindProcessColumns(rows table[capture.ProcessSample]) bound {
	type sample = capture.ProcessSample
	return bound{
		{"parent", column(rows, func(s *sample) *int { return &s.Parent })},
		{"cpu_s", column(rows, func(s *sample) *moment { return (*moment)(&s.CPU) })},
		{"reaped_cpu_s", column(rows, func(s *sample) *moment { return (*moment)(&s.Reaped) })},
		{"rss_bytes", column(rows, func(s *sample) *int64 { return &s.RSSBytes })},
		{"threads", column(rows, func(s *sample) *int { return &s.Threads })},
		{"minor_faults", column(rows, func(s *sample) *stat.Opt { return &s.MinorFaults })},
		{"major_faults", column(rows, func(s *sample) *stat.Opt { return &s.MajorFaults })},
		{"pss_bytes", column(rows, func(s *sample) *stat.Opt { return &s.PSSBytes })},
		{"voluntary_switches", column(rows, func(s *sample) *stat.Opt { return &s.VoluntarySwitches })},
		{"involuntary_switches", column(rows, func(s *sample) *stat.Opt { return &s.InvoluntarySwitches })},
		{"read_bytes", column(rows, func(s *sample) *stat.Opt { return &s.ReadBytes })},
		{"written_bytes", column(rows, func(s *sample) *stat.Opt { return &s.WrittenBytes })},
		{"run_wait_s", column(rows, func(s *sample) *stat.Opt { return &s.RunWaitSeconds })},
	}
}

// cgroups binds the samples of a control group as columns.
func cgroups(list *[]capture.CgroupSample) codec {
	type sample = capture.CgroupSample
	at := binding{"at_s", moments(list, func(s *sample) *time.Duration { return &s.At })}
	columns := func() bound {
		var rows table[sample]
		for i := range *list {
			rows = append(rows, row[sample]{i, &(*list)[i]})
		}
		return bound{
			{"path", column(rows, func(s *sample) *string { return &s.Path })},
			{"whole", column(rows, func(s *sample) *bool { return &s.Whole })},
			{"cpu_s", column(rows, func(s *sample) *stat.Opt { return &s.CPUSeconds })},
			{"periods", column(rows, func(s *sample) *stat.Opt { return &s.Periods })},
			{"throttled_periods", column(rows, func(s *sample) *stat.Opt { return &s.ThrottledPeriods })},
			{"throttled_s", column(rows, func(s *sample) *stat.Opt { return &s.ThrottledSeconds })},
			{"cpu_limit_cores", column(rows, func(s *sample) *stat.Opt { return &s.CPULimitCores })},
			{"memory_bytes", column(rows, func(s *sample) *stat.Opt { return &s.MemoryBytes })},
			{"memory_limit_bytes", column(rows, func(s *sample) *stat.Opt { return &s.MemoryLimitBytes })},
		}
	}
	return codec{func() any { return append(bound{at}, columns()...) }, func(raw []byte) error {
		if err := (bound{at}).UnmarshalJSON(raw); err != nil { // this creates the samples
			return err
		}
		return columns().UnmarshalJSON(raw)
	}}
}

// gpuRow is one reading of a device. Its throttle mask may be missing.
type gpuRow struct {
	gpu  engine.GPU
	mask mask
}

// devices binds the GPUs of a capture, each with its readings as columns.
func devices(g *capture.GPUs) codec {
	field := func(f engine.GPUField) func(*gpuRow) *stat.Opt {
		return func(r *gpuRow) *stat.Opt { return &r.gpu.Fields[f] }
	}
	maskOf := func(r *gpuRow) *mask { return &r.mask }
	read := elements(func(int) {}, func(_ int, raw []byte) error {
		var d engine.GPU
		var rows table[gpuRow]
		present := presence(&rows, len(g.Readings))
		if err := (bound{{"index", &d.Index}, {"name", &d.Name}, {"uuid", &d.UUID}, {"present", present}}).UnmarshalJSON(raw); err != nil {
			return err
		}
		var fields bound
		for _, f := range engine.GPUFields() {
			fields = append(fields, binding{f.Key(), column(rows, field(f))})
		}
		if err := (bound{{"fields", fields}, {"throttle_mask", column(rows, maskOf)}}).UnmarshalJSON(raw); err != nil {
			return err
		}
		for _, r := range rows {
			x := r.value.gpu
			x.Index, x.Name, x.UUID, x.Throttle, x.ThrottleOK = d.Index, d.Name, d.UUID, r.value.mask.bits, r.value.mask.ok
			reading := &g.Readings[r.sample]
			reading.Devices = append(reading.Devices, x)
		}
		return nil
	})
	return codec{func() any {
		list, rows := deviceRows(g.Readings)
		out := []any{}
		for i, d := range list {
			fields := map[string]any{}
			for _, f := range engine.GPUFields() {
				if c := knownSteps(rows[i], field(f)); len(c.Value) > 0 {
					fields[f.Key()] = c
				}
			}
			out = append(out, Object{
				{"index", d.Index}, {"name", d.Name}, {"uuid", d.UUID}, {"present", presence(&rows[i], 0)}, {"fields", fields},
				{"throttle_mask", column(rows[i], maskOf)},
			})
		}
		return out
	}, func(raw []byte) error {
		if err := boundRows(raw, len(g.Readings)); err != nil {
			return err
		}
		return read(raw)
	}}
}

// deviceRows returns the devices in readings by first appearance, each with its rows.
func deviceRows(readings []engine.GPUReading) (list []*engine.GPU, rows []table[gpuRow]) {
	for i := range readings {
		for j := range readings[i].Devices {
			g := &readings[i].Devices[j]
			at := slices.IndexFunc(list, func(k *engine.GPU) bool { return k.Index == g.Index && k.Name == g.Name && k.UUID == g.UUID })
			if at < 0 {
				at, list, rows = len(list), append(list, g), append(rows, nil)
			}
			if n := len(rows[at]); n == 0 || rows[at][n-1].sample != i {
				rows[at] = append(rows[at], row[gpuRow]{i, &gpuRow{*g, mask{g.Throttle, g.ThrottleOK}}})
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

// UnmarshalJSON implements json.Unmarshaler.
func (m *mask) UnmarshalJSON(raw []byte) error {
	if *m = (mask{}); string(raw) == "null" {
		return nil
	}
	m.ok = true
	return json.Unmarshal(raw, &m.bits)
}

// pageFields binds a column, with a value for each page, for every field that some page has.
func pageFields(pages *[]capture.PageSample) codec {
	return codec{func() any {
		fields := map[string][]stat.Opt{}
		for i := range *pages {
			for name, v := range (*pages)[i].Fields() {
				if !v.Finite().OK {
					continue
				}
				if fields[name] == nil {
					fields[name] = make([]stat.Opt, len(*pages))
				}
				fields[name][i] = *v
			}
		}
		return fields
	}, decoded(func(fields map[string][]stat.Opt) error {
		for name, column := range fields {
			if len(column) != len(*pages) {
				return fmt.Errorf("%s has %d values for %d pages", name, len(column), len(*pages))
			}
			for i := range column {
				if v := (*pages)[i].Fields()[name]; v != nil {
					*v = column[i]
				}
			}
		}
		return nil
	})}
}

// quantities binds an object of quantities and keeps their order.
func quantities(list *[]engine.NamedQuantity) codec {
	return codec{func() any {
		o := Object{}
		for _, x := range *list {
			o = append(o, Member{x.Name, x.Quantity.Finite()})
		}
		return o
	}, decoded(func(order Object) error {
		for _, m := range order {
			n := engine.NamedQuantity{Name: m.Key}
			if err := json.Unmarshal(m.Value.(json.RawMessage), &n.Quantity); err != nil {
				return err
			}
			*list = append(*list, n)
		}
		return nil
	})}
}
