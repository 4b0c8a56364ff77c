package optrace

import (
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Target is what was traced, and how it was read.
type Target struct {
	PID     int    `json:"pid" absent:"0"` // 0 where a file was probed and no process
	Command string `json:"command"`
	// Files are the mapped files that matter, in the order of their roles.
	Files []File `json:"files"`
	// Runtime is what the target says it is ("ggml 0.25.1"), "" unknown.
	Runtime string `json:"runtime"`
	// Hook is how operators are seen: the symbol's name; "" where only graphs or calls are.
	Hook string `json:"hook"`
	// Layout says where the offsets of GGML's structures came from: "accessors",
	// "version table", "DWARF"; "" none.
	Layout string `json:"layout"`
	// Verified says that tensors that were read fit the layout; with false names and
	// shapes are withheld, and Withheld says why.
	Verified bool   `json:"layout_verified"`
	Withheld string `json:"withheld,omitempty"`
	Sites    []Site `json:"sites"`
	Arch     string `json:"arch"` // GOARCH
	Kernel   string `json:"kernel"`
	CPU      string `json:"cpu"`             // the CPU's model name
	CPUs     int    `json:"cpus" absent:"0"` // logical CPUs that the target may use, 0 unknown
	Model    string `json:"model"`           // path of the mapped model file, "" unknown
}

// File is one mapped file of the target.
type File struct {
	Role    string `json:"role"` // "cpu backend", "base", "llama", "program"
	Path    string `json:"path"`
	BuildID string `json:"build_id"`
}

// Site is one place of a probe.
type Site struct {
	Symbol string `json:"symbol"`
	File   string `json:"file"`
	Offset uint64 `json:"offset"` // bytes after the symbol
	// Instruction is what is there; Cheap says that the kernel emulates it and does
	// not single-step it (arch/x86/kernel/uprobes.c).
	Instruction string        `json:"instruction"`
	Cheap       bool          `json:"cheap"`
	Cost        time.Duration `json:"cost_ns" absent:"0"` // expected, for each hit, 0 not reckoned
}

// Recording is what a source saw of one target over one run.
type Recording struct {
	Target Target
	Tables *Tables
	Events []Event // in the order of At
	Begin  time.Duration
	End    time.Duration
	// Origin is Begin on the wall clock.
	Origin time.Time
	Detail Detail
	// Dropped counts events that were lost on the way, and events that were left out
	// because the recording had its full size.
	Dropped  int64
	LeftOut  int64
	Roof     Roof
	Gaps     []Gap
	Observer Observer
	// Processes are names, by PID, of processes that had the CPU between the target's
	// threads.
	Processes map[int32]string
	// Reader is the PID of the process that recorded, as events have it; 0 not known.
	Reader int
	// HostLoad is who had the CPUs meanwhile, nil where nobody looked.
	HostLoad *HostLoad
}

// Gap is something that is not known of this run, with the reason and what to do.
type Gap struct {
	What string `json:"what"`
	Why  string `json:"why"`
	Next string `json:"next"` // "" nothing can be done
}

// Roof is what the machine can do, for the threads that compute.
type Roof struct {
	// BytesPerSecond is the highest rate of reading memory that was seen or is known,
	// FlopsPerSecond that of floating-point operations (a multiply and an add are two);
	// 0 is unknown.
	BytesPerSecond float64 `json:"bytes_per_s" absent:"0"`
	FlopsPerSecond float64 `json:"flops_per_s" absent:"0"`
	// FlopsOf says which operations FlopsPerSecond counts: "f32, AVX-512 FMA"; "" unknown.
	FlopsOf string `json:"flops_of,omitempty"`
	// Int8PerSecond is the rate of operations on eight-bit integers (a multiply and an
	// add are two), by which GGML multiplies weights that are quantised: bare, which its
	// kernels do not come near ([Roof.Computing]). Int8Of is how they were done: "int8,
	// AVX-512 VNNI"; 0 and "" unknown.
	Int8PerSecond float64 `json:"int8_ops_per_s,omitempty"`
	Int8Of        string  `json:"int8_of,omitempty"`
	// Threads is the number of threads that the rates are of, 0 unknown.
	Threads int `json:"threads" absent:"0"`
	// From is [RoofMeasured], [RoofPlain], [RoofDisturbed], [RoofCatalog] or [RoofSeen];
	// "" none.
	From string `json:"from"`
	// MeasuredOn is the day of a measurement that was made before the trace, "2026-11-22";
	// "" it was made with the trace, or not at all.
	MeasuredOn string `json:"measured_on,omitempty"`
	// ByThreads are the rates with fewer and more threads, ascending, as far as they
	// were measured.
	ByThreads []RoofPoint `json:"by_threads,omitempty"`
}

// GapRoof is what a [Gap] says is not known where the roof was to be measured and could
// not be.
const GapRoof = "what this machine can do"

// RoofPoint is a [Roof] with another number of threads.
type RoofPoint struct {
	Threads        int     `json:"threads"`
	BytesPerSecond float64 `json:"bytes_per_s" absent:"0"`
	FlopsPerSecond float64 `json:"flops_per_s" absent:"0"`
	Int8PerSecond  float64 `json:"int8_ops_per_s,omitempty"`
}

// Quantised says whether a type of GGML holds blocks of small integers with a scale:
// q4_0, q6_K, iq4_nl, tq1_0, mxfp4 and their kin.
func Quantised(name string) bool {
	for _, prefix := range [...]string{"q", "iq", "tq", "mxfp", "nvfp"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
			return true
		}
	}
	return false
}

// Observer is what watching costs the target. Its ratios are shares of the target's speed
// that it loses, as of [SpeedLost]: what a token takes longer over what it takes with that.
type Observer struct {
	// Hits is the number of probe hits for a token that is decoded, CostPerHit what one
	// is reckoned to cost, Expected what they cost of the target's speed; 0 not reckoned.
	HitsPerToken float64       `json:"hits_per_token" absent:"0"`
	CostPerHit   time.Duration `json:"cost_per_hit_ns" absent:"0"`
	Expected     float64       `json:"expected_ratio" absent:"0"`
	// Threads are those that are hit side by side, over which HitsPerToken is spread; 0 not
	// known, and hits are of one. GraphTime is how long a decode graph takes without the
	// probes: the middle one of Graphs, the fastest where these are fewer than 20. From is
	// [ExpectedTrace], [ExpectedBefore], [ExpectedOther] or [ExpectedUntold]; "" not said.
	Threads   int           `json:"threads" absent:"0"`
	GraphTime time.Duration `json:"expected_graph_ns" absent:"0"`
	Graphs    int           `json:"expected_graphs" absent:"0"`
	From      string        `json:"expected_from"`
	// MeanGraph is the mean of the decode graphs of the trace, probes and what held some up
	// included; 0 where Graphs are not the trace's.
	MeanGraph time.Duration `json:"expected_mean_graph_ns" absent:"0"`
	// Times is what Expected was corrected by, as [Expectation] has it; 0 it was not.
	Times float64 `json:"expected_times" absent:"0"`
	// Limit is the share of its speed that the target was to lose at most; 0 none was set.
	Limit float64 `json:"limit_ratio" absent:"0"`
	// Measured is the same by toggled windows with its 95 % interval; Windows is 0
	// where it was not measured.
	Measured     float64 `json:"measured_ratio"`
	MeasuredLow  float64 `json:"measured_low"`
	MeasuredHigh float64 `json:"measured_high"`
	Windows      int     `json:"windows"`
	// Reader is the share of the time of graphs for which rooftop itself had the CPU of a
	// lane that could have run, as [OtherRow.Share] is, and ReaderTime how long; none and 0
	// where scheduling was not traced, or it is not known which process rooftop was.
	Reader     stat.Opt      `json:"reader_ratio"`
	ReaderTime time.Duration `json:"reader_ns"`
}
