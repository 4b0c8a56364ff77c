package optrace

import (
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Target is the traced process, and how it was read.
type Target struct {
	PID     int    `json:"pid,omitzero"` // 0 if a file was probed instead of a process
	Command string `json:"command"`
	// Files are the relevant mapped files, in the order of their roles.
	Files []File `json:"files"`
	// Runtime is the name and version that the runtime reports ("ggml 0.25.1"), "" if unknown.
	Runtime string `json:"runtime"`
	// Hook is the symbol that every operator passes; "" if only graphs or calls are traced.
	Hook string `json:"hook"`
	// Layout is the source of the offsets in GGML's structures: "accessors", "version table",
	// "DWARF"; "" if there is none.
	Layout string `json:"layout"`
	// Verified reports whether the tensors that were read fit the layout. If not, names and
	// shapes are withheld, and Withheld says why.
	Verified bool   `json:"layout_verified"`
	Withheld string `json:"withheld,omitempty"`
	Sites    []Site `json:"sites"`
	Arch     string `json:"arch"` // GOARCH
	Kernel   string `json:"kernel"`
	CPU      string `json:"cpu"`           // the CPU's model name
	CPUs     int    `json:"cpus,omitzero"` // logical CPUs that the target may use, 0 unknown
	Model    string `json:"model"`         // path of the mapped model file, "" unknown
}

// File is one mapped file of the target.
type File struct {
	Role    string `json:"role"` // "cpu backend", "base", "llama", "program"
	Path    string `json:"path"`
	BuildID string `json:"build_id"`
}

// Site is the location of one probe.
type Site struct {
	Symbol string `json:"symbol"`
	File   string `json:"file"`
	Offset uint64 `json:"offset"` // bytes after the symbol
	// Instruction is the probed instruction; Cheap reports whether the kernel emulates it
	// instead of single-stepping it (arch/x86/kernel/uprobes.c).
	Instruction string        `json:"instruction"`
	Cheap       bool          `json:"cheap"`
	Cost        time.Duration `json:"cost_ns,omitzero"` // expected cost per hit, 0 if not estimated
}

// Recording is what a source recorded of one target in one run.
type Recording struct {
	Target Target
	Tables *Tables
	Events []Event // ordered by At
	Begin  time.Duration
	End    time.Duration
	// Origin is Begin on the wall clock.
	Origin time.Time
	Detail Detail
	// Dropped counts events that were lost, LeftOut events that were left out because the
	// recording had reached its full size.
	Dropped  int64
	LeftOut  int64
	Peak     Peak
	Gaps     []Gap
	Observer Observer
	// Reader is the PID of the recording process, as events have it; 0 if unknown.
	Reader int
	// HostLoad is how the CPUs were used meanwhile, nil if it was not read.
	HostLoad *HostLoad
}

// Gap is something that is unknown in a trace, with the reason and the next step.
type Gap struct {
	What string `json:"what"`
	Why  string `json:"why"`
	Next string `json:"next"` // "" if nothing can be done
}

// Peak is what the machine can do with the compute threads of the target.
type Peak struct {
	// BytesPerSecond is the highest known rate of reading memory, FlopsPerSecond that of
	// floating-point operations (a multiply and an add are two); 0 is unknown.
	BytesPerSecond float64 `json:"bytes_per_s,omitzero"`
	FlopsPerSecond float64 `json:"flops_per_s,omitzero"`
	// FlopsOf is what FlopsPerSecond counts: "f32, AVX-512 FMA"; "" is unknown.
	FlopsOf string `json:"flops_of,omitempty"`
	// Int8PerSecond is the bare rate of operations on eight-bit integers (a multiply and an add
	// are two), with which GGML multiplies quantised weights; its kernels stay far below it
	// ([Peak.ComputeRate]). Int8Of is how it was measured: "int8, AVX-512 VNNI"; 0 and "" are
	// unknown.
	Int8PerSecond float64 `json:"int8_ops_per_s,omitempty"`
	Int8Of        string  `json:"int8_of,omitempty"`
	// Threads is the number of threads that the rates are for, 0 if unknown.
	Threads int `json:"threads,omitzero"`
	// From is [PeakMeasured], [PeakCatalog] or [PeakSeen]; "" is none.
	From string `json:"from"`
}

// PeakPoint is the rates of a [Peak] with another number of threads.
type PeakPoint struct {
	Threads        int     `json:"threads"`
	BytesPerSecond float64 `json:"bytes_per_s,omitzero"`
	FlopsPerSecond float64 `json:"flops_per_s,omitzero"`
	Int8PerSecond  float64 `json:"int8_ops_per_s,omitempty"`
}

// Quantised reports whether a type of GGML holds blocks of small integers with a scale: q4_0,
// q6_K, iq4_nl, tq1_0, mxfp4 and similar types.
func Quantised(name string) bool {
	for _, prefix := range [...]string{"q", "iq", "tq", "mxfp", "nvfp"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
			return true
		}
	}
	return false
}

// Observer is what tracing costs the target. Its ratios are shares of the target's speed that
// it loses (see [SpeedLost]): the added time of a token over its time with tracing.
type Observer struct {
	// HitsPerToken is the number of probe hits per decoded token, CostPerHit the estimated cost
	// of one, Expected their cost as a share of the target's speed; 0 is not estimated.
	HitsPerToken float64       `json:"hits_per_token,omitzero"`
	CostPerHit   time.Duration `json:"cost_per_hit_ns,omitzero"`
	Expected     float64       `json:"expected_ratio,omitzero"`
	// Threads is the number of threads that are hit concurrently and share HitsPerToken; 0 is
	// unknown, and counts as one. GraphTime is the time of a decode graph without probes: the
	// median of Graphs, or the fastest if these are fewer than 20. From is [ExpectedTrace],
	// [ExpectedBefore], [ExpectedOther] or [ExpectedUnknown]; "" if unknown.
	Threads   int           `json:"threads,omitzero"`
	GraphTime time.Duration `json:"expected_graph_ns,omitzero"`
	Graphs    int           `json:"expected_graphs,omitzero"`
	From      string        `json:"expected_from"`
	// MeanGraph is the mean of the trace's decode graphs, including probes and interruptions; 0
	// if Graphs are not the trace's.
	MeanGraph time.Duration `json:"expected_mean_graph_ns,omitzero"`
	// Times is the correction of Expected, as in [Expectation]; 0 is none.
	Times float64 `json:"expected_times,omitzero"`
	// Limit is the largest share of its speed that the target may lose; 0 is no limit.
	Limit float64 `json:"limit_ratio,omitzero"`
	// Measured is the share of speed lost by toggled windows, with its 95 % interval; Windows
	// is 0 if it was not measured.
	Measured     float64 `json:"measured_ratio"`
	MeasuredLow  float64 `json:"measured_low"`
	MeasuredHigh float64 `json:"measured_high"`
	Windows      int     `json:"windows"`
	// ReaderTime is the time of threads without a CPU in absences that the tracing process began
	// or ended: an estimate of what it took. Reader is the share of the time of graphs, by the
	// thread that lost most in each graph. They are 0 and absent if scheduling was not traced, or
	// rooftop's PID is unknown.
	Reader     stat.Opt      `json:"reader_ratio"`
	ReaderTime time.Duration `json:"reader_ns"`
}
