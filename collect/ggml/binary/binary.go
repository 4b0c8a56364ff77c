// Package binary reads what a trace needs to know out of the files of a GGML runtime,
// stripped ones too: where its functions are, how its structures are laid out, what
// its operators are called, and which instruction of a function a probe may sit on.
// It needs no table of versions and no debug information; files are read as they lie
// on the disk, nothing is run.
//
// How: GGML exports tiny accessors (ggml_get_name, ggml_nelements and others), whose
// few instructions hold the offsets of the fields that they read. ARCHITECTURE.md has
// the reasons.
package binary

import (
	"os"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// Point is something that can be probed.
type Point uint8

// Points. Which arguments a probe there needs is said in brackets.
const (
	PointOp            Point = iota // ggml_cpu_extra_compute_forward(params, tensor) [2]
	PointOpFused                    // ggml_compute_forward_*_fused(params, tensor, tensor) [3]
	PointOpOld                      // ggml_compute_forward(params, tensor), builds before 2025 [2]
	PointOpEach                     // ggml_compute_forward_<op>(params, tensor), where neither is there [2]
	PointGraph                      // ggml_graph_compute(cgraph, cplan) [2]
	PointGraphReturn                // at its returns, never a uretprobe: operators of C++ run in its frame
	PointBarrier                    // ggml_barrier(threadpool) [0]
	PointBarrierReturn              // its return
	PointSplit                      // ggml_backend_graph_compute_async(backend, cgraph) [2]
	PointTensorSet                  // ggml_backend_tensor_set(tensor, data, offset, size) [4]
	PointTensorGet                  // ggml_backend_tensor_get, _get_async: size is the last argument [4, 5]
	PointTensorCopy                 // ggml_backend_tensor_copy(src, dst) [2]
	PointDecode                     // llama_decode(ctx, batch on the stack) [stack]
	PointProcess                    // llama_process(ctx, kind, llama_batch_ext) [0]
	PointEncode                     // llama_encode(ctx, batch on the stack) [stack]
	PointCallEnd                    // after the inner call of one of these, never a uretprobe: C++ exceptions pass there
	PointSample                     // llama_sampler_sample, llama_sampler_apply [1]
	NumPoints
)

// Place is where to attach for a point.
type Place struct {
	Point  Point
	Image  *Image
	Symbol string
	// Address is the ELF virtual address of the symbol, File its offset in the file,
	// Offset what to add to both.
	Address, File uint64
	Site          optrace.Site
	// Pushed is how many bytes the stack pointer has moved at the site since the entry:
	// arguments on the stack lie that much higher.
	Pushed int
	// Ends is, of PointCallEnd and PointGraphReturn, the point whose end it is.
	Ends Point
}

// Image is one ELF file of a runtime.
type Image struct {
	Role string // "cpu backend", "base", "llama", "program"
	// Path is how the target calls the file; Open is how this process opens it
	// (through /proc/PID/root where they differ).
	Path, Open string
	BuildID    string // hexadecimal, "" none
	Arch       string // GOARCH of the file
	Stripped   bool   // it has no .symtab

	read os.FileInfo // of the file when it was read
}

// Layout is the offsets of fields in bytes; -1 is unknown.
type Layout struct {
	// Of ggml_tensor. Size is sizeof, 0 unknown.
	Type, NE, NB, Op, Params, Flags, Src, View, Data, Name, Size int
	// Slots is the number of sources (GGML_MAX_SRC).
	Slots int
	// Of ggml_cgraph.
	GraphNodes, GraphCount int // nodes (a pointer to pointers), n_nodes (an int)
	// Thread is where ggml_compute_params has the index of the thread and, after it, the
	// number of threads: at its begin, or (until June 2024, ggml 5378ea0) after the step
	// of the operator that is done: to prepare it, compute it, or finish it, with a call each.
	Thread int
	From   string // "accessors", "version table", "DWARF"
}

// Names are the names behind GGML's numbers, read from the file.
type Names struct {
	Ops, Unary, GLU []string
	Types           []Type
}

// Type is one of GGML's number formats.
type Type struct {
	Name  string
	Block int // elements of a block
	Bytes int // of a block
}

// Runtime is a GGML runtime as its files show it.
type Runtime struct {
	PID    int // 0 where files alone were given
	Images []*Image
	Layout Layout
	Names  Names
	// Version is ggml_version(), "" where there is none.
	Version string
	// Hook is the point by which operators are seen: PointOp, PointOpOld, PointOpEach,
	// or PointGraph where they are not.
	Hook   Point
	Places []Place
	// Lower are places by which operators may be seen where those of Hook are never
	// called, the best first: of PointOpOld, then of PointOpEach.
	Lower []Place
	// Model is the path of the mapped GGUF file, "" unknown.
	Model string
	// Others are other copies of GGML in the same process, each with files of its own.
	Others []*Runtime
	// Gaps are what could not be read, with the reasons.
	Gaps []optrace.Gap
}
