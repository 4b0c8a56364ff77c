package report

import (
	"encoding/json"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// seconds is a time in seconds.
type seconds float64

// steps is a column of which most values repeat: each holds from the sample of its
// place on, until the next.
type steps[T comparable] struct {
	From  []int `json:"from"`
	Value []T   `json:"value"`
}

// MarshalJSON writes a column without samples as empty lists.
func (s steps[T]) MarshalJSON() ([]byte, error) {
	type plain steps[T]
	if s.From == nil {
		s = steps[T]{From: []int{}, Value: []T{}}
	}
	return json.Marshal(plain(s))
}

// add appends the value of sample i, which is after those added before.
func (s *steps[T]) add(i int, v T) {
	if n := len(s.Value); n == 0 || s.Value[n-1] != v {
		s.From, s.Value = append(s.From, i), append(s.Value, v)
	}
}

// sampleRuns are the samples that have something, the first and the last of each run.
type sampleRuns [][2]int

// add appends sample i, which is after those added before.
func (s *sampleRuns) add(i int) {
	if n := len(*s); n > 0 && (*s)[n-1][1] == i-1 {
		(*s)[n-1][1] = i
		return
	}
	*s = append(*s, [2]int{i, i})
}

// has says that sample i, the one added last or a later one, is in it.
func (s sampleRuns) has(i int) bool { return len(s) > 0 && s[len(s)-1][1] >= i }

// mask is a set of bits that may be missing.
type mask struct {
	bits uint64
	ok   bool
}

// MarshalJSON writes null for what is missing.
func (m mask) MarshalJSON() ([]byte, error) {
	if !m.ok {
		return []byte("null"), nil
	}
	return json.Marshal(m.bits)
}

// UnmarshalJSON reads null as missing.
func (m *mask) UnmarshalJSON(b []byte) error {
	*m = mask{}
	if string(b) == "null" {
		return nil
	}
	m.ok = true
	return json.Unmarshal(b, &m.bits)
}

// wireCapture is a capture as its document has it.
type wireCapture struct {
	Begin     seconds       `json:"begin_s"`
	End       seconds       `json:"end_s"`
	PagesFrom string        `json:"pages_from"`
	Counting  string        `json:"tokens_counted,omitempty"`
	Requests  []wireRequest `json:"requests"`
	Tree      wireTree      `json:"tree"`
	GPUs      wireGPUs      `json:"gpus"`
	Pages     wirePages     `json:"pages"`
}

type wireRequest struct {
	ID              int        `json:"id"`
	Lane            int        `json:"lane"`
	Sent            seconds    `json:"sent_s"`
	Connect         seconds    `json:"connect_s"`
	Reused          bool       `json:"reused"`
	Written         *seconds   `json:"written_s"`
	Answered        *seconds   `json:"answered_s"`
	Chunks          wireChunks `json:"chunks"`
	End             seconds    `json:"end_s"`
	Status          *int       `json:"status"`
	Finish          *string    `json:"finish_reason"`
	Error           *string    `json:"error"`
	PromptTokens    stat.Opt   `json:"prompt_tokens"`
	CachedTokens    stat.Opt   `json:"cached_tokens"`
	OutputTokens    stat.Opt   `json:"output_tokens"`
	ReasoningTokens stat.Opt   `json:"reasoning_tokens"`
	PrefillSeconds  stat.Opt   `json:"prefill_s"`
	DecodeSeconds   stat.Opt   `json:"decode_s"`
	Text            *string    `json:"text"`
	Notes           []string   `json:"notes"`
}

type wireChunks struct {
	At    []seconds `json:"at_s"`
	Bytes []int     `json:"bytes"`
	Kinds []kindRun `json:"kinds"`
}

// kindRun is a number of chunks of one kind in a row.
type kindRun struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
}

type wireTree struct {
	Root      int           `json:"root_pid"`
	How       string        `json:"how"`
	Why       *string       `json:"reason"`
	CPUs      int           `json:"cpus"`
	Listener  *wireListener `json:"listener"`
	At        []seconds     `json:"at_s"`
	Took      []seconds     `json:"took_s"`
	Partial   sampleRuns    `json:"partial"`
	Walked    sampleRuns    `json:"walked"`
	Errors    []sampleError `json:"errors"`
	Processes []wireProcess `json:"processes"`
	Cgroups   wireCgroups   `json:"cgroups"`
}

// wireListener is who listens on the server's port, as far as it is known.
type wireListener struct {
	PID  int    `json:"pid"`
	Comm string `json:"comm"`
	Port int    `json:"port"`
}

// sampleError is why a sample says nothing.
type sampleError struct {
	Sample int    `json:"sample"`
	Error  string `json:"error"`
}

type wireProcess struct {
	PID                 int             `json:"pid"`
	PPID                int             `json:"ppid"`
	InnerPID            int             `json:"inner_pid"`
	Ticks               uint64          `json:"start_ticks"`
	Comm                string          `json:"comm"`
	Title               string          `json:"title"`
	Role                string          `json:"role"`
	Joined              seconds         `json:"joined_s"`
	Left                *seconds        `json:"left_s"`
	Earlier             bool            `json:"earlier"`
	Present             sampleRuns      `json:"present"`
	Parent              steps[int]      `json:"parent"`
	CPU                 steps[seconds]  `json:"cpu_s"`
	Reaped              steps[seconds]  `json:"reaped_cpu_s"`
	RSS                 steps[int64]    `json:"rss_bytes"`
	Threads             steps[int]      `json:"threads"`
	MinorFaults         steps[stat.Opt] `json:"minor_faults"`
	MajorFaults         steps[stat.Opt] `json:"major_faults"`
	PSS                 steps[stat.Opt] `json:"pss_bytes"`
	VoluntarySwitches   steps[stat.Opt] `json:"voluntary_switches"`
	InvoluntarySwitches steps[stat.Opt] `json:"involuntary_switches"`
	ReadBytes           steps[stat.Opt] `json:"read_bytes"`
	WrittenBytes        steps[stat.Opt] `json:"written_bytes"`
	RunWait             steps[stat.Opt] `json:"run_wait_s"`
}

// optColumn is a column of a process with its place in a sample.
type optColumn struct {
	column *steps[stat.Opt]
	value  *stat.Opt
}

// columns pairs the optional columns of p with the fields of s.
func (p *wireProcess) columns(s *capture.ProcessSample) [8]optColumn {
	return [...]optColumn{
		{&p.MinorFaults, &s.MinorFaults}, {&p.MajorFaults, &s.MajorFaults}, {&p.PSS, &s.PSSBytes},
		{&p.VoluntarySwitches, &s.VoluntarySwitches}, {&p.InvoluntarySwitches, &s.InvoluntarySwitches},
		{&p.ReadBytes, &s.ReadBytes}, {&p.WrittenBytes, &s.WrittenBytes}, {&p.RunWait, &s.RunWaitSeconds},
	}
}

type wireCgroups struct {
	At               []seconds       `json:"at_s"`
	Path             steps[string]   `json:"path"`
	Whole            steps[bool]     `json:"whole"`
	CPU              steps[stat.Opt] `json:"cpu_s"`
	Periods          steps[stat.Opt] `json:"periods"`
	ThrottledPeriods steps[stat.Opt] `json:"throttled_periods"`
	Throttled        steps[stat.Opt] `json:"throttled_s"`
	CPULimit         steps[stat.Opt] `json:"cpu_limit_cores"`
	Memory           steps[stat.Opt] `json:"memory_bytes"`
	MemoryLimit      steps[stat.Opt] `json:"memory_limit_bytes"`
}

// columns pairs the optional columns of a control group with the fields of s.
func (c *wireCgroups) columns(s *capture.CgroupSample) [7]optColumn {
	return [...]optColumn{
		{&c.CPU, &s.CPUSeconds}, {&c.Periods, &s.Periods}, {&c.ThrottledPeriods, &s.ThrottledPeriods}, {&c.Throttled, &s.ThrottledSeconds},
		{&c.CPULimit, &s.CPULimitCores}, {&c.Memory, &s.MemoryBytes}, {&c.MemoryLimit, &s.MemoryLimitBytes},
	}
}

type wireGPUs struct {
	From      string       `json:"from"`
	How       string       `json:"how"`
	Why       *string      `json:"reason"`
	Averaging seconds      `json:"averaging_s"`
	Instant   bool         `json:"instant_power"`
	At        []seconds    `json:"at_s"`
	Took      []seconds    `json:"took_s"`
	Devices   []wireDevice `json:"devices"`
}

// wireDevice has the fields that were read at least once, by their names.
type wireDevice struct {
	Index    int                         `json:"index"`
	Name     string                      `json:"name"`
	UUID     string                      `json:"uuid"`
	Present  sampleRuns                  `json:"present"`
	Fields   map[string]*steps[stat.Opt] `json:"fields"`
	Throttle steps[mask]                 `json:"throttle_mask"`
}

func (d *wireDevice) is(g *engine.GPU) bool {
	return d.Index == g.Index && d.Name == g.Name && d.UUID == g.UUID
}

// wirePages has the fields that some page had, by their names, with a value a page.
type wirePages struct {
	At     []seconds             `json:"at_s"`
	Took   []seconds             `json:"took_s"`
	Errors []sampleError         `json:"errors"`
	Fields map[string][]stat.Opt `json:"fields"`
}

// pageFields are the fields of a page by their names.
func pageFields(p *capture.PageSample) map[string]*stat.Opt {
	return map[string]*stat.Opt{
		"generation_tokens": &p.GenerationTokens, "prompt_tokens": &p.PromptTokens, "requests": &p.Requests,
		"running": &p.Running, "waiting": &p.Waiting, "kv_usage": &p.KVUsage, "sequence_steps": &p.SequenceSteps,
		"ttft_sum_s": &p.TTFTSum, "ttft_count": &p.TTFTCount, "queue_sum_s": &p.QueueSum, "queue_count": &p.QueueCount,
		"prefill_sum_s": &p.PrefillSum, "prefill_count": &p.PrefillCount,
	}
}

// chunkKinds are the kinds of chunk by their names.
var chunkKinds = [...]string{capture.Text: "text", capture.Reasoning: "reasoning", capture.ToolCall: "tool_call", capture.Empty: "empty"}
