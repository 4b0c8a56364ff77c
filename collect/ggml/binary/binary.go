// Package binary determines what a trace needs from the files of a GGML runtime, stripped ones
// included: where its functions are, how its structures are laid out, the names of its
// operators, and on which instruction of a function a probe may sit. It needs neither a table
// of versions nor debug information; files are read without running anything.
//
// Method: GGML exports tiny accessors (ggml_get_name, ggml_nelements and others), whose few
// instructions contain the offsets of the fields that they read. ARCHITECTURE.md has the
// reasons.
package binary

import (
	"os"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// Point is something that can be probed.
type Point uint8

// Points, with the number of arguments that a probe needs there in brackets.
const (
	PointOp            Point = iota // ggml_cpu_extra_compute_forward(params, tensor) [2]
	PointOpFused                    // ggml_compute_forward_*_fused(params, tensor, tensor) [3]
	PointOpOld                      // ggml_compute_forward(params, tensor), builds before 2025 [2]
	PointOpEach                     // ggml_compute_forward_<op>(params, tensor), if neither exists [2]
	PointGraph                      // ggml_graph_compute(cgraph, cplan) [2]
	PointGraphReturn                // at its returns, never a uretprobe: C++ operators run in its frame
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
	// Address is the ELF virtual address of the symbol, File its offset in the file. The site's
	// Offset is added to both.
	Address, File uint64
	Site          optrace.Site
	// Pushed is by how many bytes the stack pointer has moved from the entry to the site:
	// arguments on the stack are that much higher.
	Pushed int
	// Ends is the point that ends here, for PointCallEnd and PointGraphReturn.
	Ends Point
}

// Image is one ELF file of a runtime.
type Image struct {
	Role string // "cpu backend", "base", "llama", "program"
	// Path is the target's path of the file, Open the path by which this process opens it
	// (through /proc/PID/root if they differ).
	Path, Open string
	BuildID    string // hexadecimal, "" if there is none

	read os.FileInfo // of the file when it was read
}

// Layout is the offsets of fields in bytes; -1 is unknown.
type Layout struct {
	// Offsets in ggml_tensor. Size is its sizeof, 0 if unknown.
	Type, NE, NB, Op, Params, Flags, Src, View, Data, Name, Size int
	// Slots is the number of sources (GGML_MAX_SRC).
	Slots int
	// Offsets in ggml_cgraph.
	GraphNodes, GraphCount int    // nodes (a pointer to pointers), n_nodes (an int)
	From                   string // "accessors", "version table"
}

// Names are the names for GGML's numbers, read from the file.
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

// Runtime is a GGML runtime as described by its files.
type Runtime struct {
	PID    int // 0 if only files were given
	Images []*Image
	Layout Layout
	Names  Names
	// Version is ggml_version(), "" if there is none.
	Version string
	// Hook is the point by which operators are traced: PointOp, PointOpOld, PointOpEach, or
	// PointGraph if they cannot be.
	Hook   Point
	Places []Place
	// Lower are alternative places of operators if those of Hook are never called, the best
	// first: those of PointOpOld, then of PointOpEach.
	Lower []Place
	// Model is the path of the mapped GGUF file, "" if unknown.
	Model string
	// Gaps are what could not be read, with the reasons.
	Gaps []optrace.Gap
}
