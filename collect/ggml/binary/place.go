package binary

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// probe is the function that a point is probed in and what the probe needs there.
type probe struct {
	point  Point
	symbol string
	need   need
}

// probes are the probes with fixed names. A llama_batch is passed by value: on the stack of
// x86-64, by address in the second argument on arm64.
var probes = []probe{
	{PointGraph, "ggml_graph_compute", need{arguments: 2}},
	{PointBarrier, barrierSymbol, need{}},
	{PointBarrierReturn, barrierSymbol, need{ret: true}},
	{PointSplit, "ggml_backend_graph_compute_async", need{arguments: 2}},
	{PointTensorSet, "ggml_backend_tensor_set", need{arguments: 4}},
	{PointTensorGet, "ggml_backend_tensor_get", need{arguments: 4}},
	{PointTensorGet, "ggml_backend_tensor_get_async", need{arguments: 5}},
	{PointTensorCopy, "ggml_backend_tensor_copy", need{arguments: 2}},
	{PointDecode, "llama_decode", need{stack: true}},
	{PointProcess, "llama_process", need{}},
	{PointEncode, "llama_encode", need{stack: true}},
	{PointSample, "llama_sampler_sample", need{arguments: 1}},
	{PointSample, "llama_sampler_apply", need{arguments: 1}},
}

// Symbols of the functions that operators and graphs pass.
const (
	hookSymbol    = "ggml_cpu_extra_compute_forward"
	oldSymbol     = "ggml_compute_forward"
	eachPrefix    = "ggml_compute_forward_"
	fusedSuffix   = "_fused"
	graphSymbol   = "ggml_graph_compute"
	barrierSymbol = "ggml_barrier"
	decodeSymbol  = "llama_decode"
)

// part is a file of a runtime.
type part struct {
	image  *Image
	object *object
}

// places chooses where to attach in the files of a runtime, and by which point operators are
// traced.
func places(parts []part, l *Layout) (hook Point, found []Place, gaps []optrace.Gap) {
	hook, operators, gaps := operatorProbes(parts, l)
	for _, p := range slices.Concat(operators, probes) {
		for i := range parts {
			place, ok := parts[i].place(p)
			if !ok {
				continue
			}
			if p.symbol == barrierSymbol && parts[i].idle(p.symbol) {
				if p.need.ret {
					gaps = append(gaps, optrace.Gap{
						What: "waits in barriers", Why: barrierSymbol + " is empty in this build: the compiler put the waits elsewhere",
						Next: "waits show as time of the operators they are in",
					})
				}
				break
			}
			found = append(found, place)
			break
		}
	}
	found, more := ends(parts, found)
	return hook, found, append(gaps, more...)
}

// operatorProbes returns the probes of operators at the best available hook.
func operatorProbes(parts []part, l *Layout) (Point, []probe, []optrace.Gap) {
	if hasFunction(parts, hookSymbol) {
		fused := matching(parts, func(n string) bool { return strings.HasPrefix(n, eachPrefix) && strings.HasSuffix(n, fusedSuffix) })
		return PointOp, append(probesOf(PointOp, 2, hookSymbol), probesOf(PointOpFused, 3, fused...)...), nil
	}
	if old := oldProbes(parts); len(old) > 0 && inSteps(parts, l) {
		return PointGraph, nil, []optrace.Gap{{
			What: "operators", Why: "GGML before June 2024 computes an operator in up to three steps, which look like several operators",
			Next: "use a later build; the level graph still shows graphs and tokens",
		}}
	} else if len(old) > 0 {
		return PointOpOld, old, nil
	}
	if each := eachProbes(parts); len(each) > 0 {
		return PointOpEach, each, []optrace.Gap{{
			What: "matrix products with repacked or AMX weights, and mixtures",
			Why:  fmt.Sprintf("the file has neither %s nor %s, only %d functions of single operators, which these bypass", hookSymbol, oldSymbol, len(each)),
			Next: "use a GGML of 2024-12 or later, or one that is not stripped",
		}}
	}
	if !slices.ContainsFunc(parts, func(p part) bool { return p.hasBackend() || p.image.Role == roleProgram }) {
		return PointGraph, nil, []optrace.Gap{{
			What: "operators and graphs", Why: "no CPU backend (libggml-cpu) is there or loaded; programs load it with their first model",
			Next: "let the program load a model, or give the backend's file",
		}}
	}
	gap := optrace.Gap{
		What: "operators", Why: "the files have no symbol of a function that operators pass: they were linked statically and stripped",
		Next: "trace at the level graph, or use a build that is not stripped",
	}
	if !hasFunction(parts, graphSymbol) {
		gap.What = "operators and graphs"
		gap.Why = "neither ggml_graph_compute nor any function of an operator has a symbol in the files: they were linked statically and stripped"
		gap.Next = "use a build that is not stripped, or one with shared libraries"
	}
	return PointGraph, nil, []optrace.Gap{gap}
}

// Suffixes that GCC gives to copies and parts of a function with the same arguments: a copy for
// a constant argument (ipa-cp.cc), which some callers use, and the remainder of a function
// whose begin was inlined into its callers (ipa-split.cc).
const (
	constantSuffix = ".constprop."
	pieceSuffix    = ".part."
)

// isOld reports whether a function is ggml_compute_forward, or a copy or part of it.
func isOld(name string) bool {
	return name == oldSymbol || strings.HasPrefix(name, oldSymbol+constantSuffix) || strings.HasPrefix(name, oldSymbol+pieceSuffix)
}

// Until June 2024 (ggml 5378ea0) tensors had times between their sources and the view:
// perf_runs, perf_cycles and perf_time_us.
const (
	perfWords = 3
	perfView  = 116 // bytes from the flags to the view
)

// inSteps reports whether operators are computed in steps (prepare, compute, finish), each of
// which is a call. If the layout does not show it, a function added in February 2024 decides.
func inSteps(parts []part, l *Layout) bool {
	if l.View >= 0 && l.Flags >= 0 {
		return l.View-l.Flags == perfView
	}
	return hasFunction(parts, "ggml_get_name") && !hasFunction(parts, "ggml_set_input")
}

// oldProbes returns the probes of ggml_compute_forward: of its parts, if there are any, which
// all calls pass, or else of the function and its copies.
func oldProbes(parts []part) []probe {
	names := matching(parts, isOld)
	if pieces := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.HasPrefix(n, oldSymbol+pieceSuffix) }); len(pieces) > 0 {
		names = pieces
	}
	return probesOf(PointOpOld, 2, names...)
}

// eachProbes returns the probes of the functions of single operators.
func eachProbes(parts []part) []probe {
	each := func(n string) bool { return strings.HasPrefix(n, eachPrefix) && !strings.HasSuffix(n, fusedSuffix) }
	return probesOf(PointOpEach, 2, matching(parts, each)...)
}

// probesOf returns probes of functions for a point that need a number of arguments.
func probesOf(point Point, arguments int, names ...string) []probe {
	var list []probe
	for _, name := range names {
		list = append(list, probe{point, name, need{arguments: arguments}})
	}
	return list
}

// hasFunction reports whether one of the files has the function.
func hasFunction(parts []part, name string) bool {
	return slices.ContainsFunc(parts, func(p part) bool { _, ok := p.object.function(name); return ok })
}

// matching returns the functions whose names satisfy a condition, sorted and without
// duplicates, at most maxNames.
func matching(parts []part, fits func(string) bool) []string {
	var found []string
	for _, p := range parts {
		for name := range p.object.symbols {
			if _, ok := p.object.function(name); ok && fits(name) {
				found = append(found, name)
			}
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	return found[:min(len(found), maxNames)]
}

// place chooses the instruction for a probe, and reports whether the file has the function.
func (p part) place(want probe) (Place, bool) {
	s, ok := p.object.function(want.symbol)
	c, known := sitesOf(p.object)
	if !ok || !known {
		return Place{}, false
	}
	chosen := c.spot(s, want.need)
	if !want.need.stack {
		chosen.pushed = 0
	}
	if want.need.ret {
		// The measured cost of a return is in addition to an entry at the same site.
		chosen.cost = costReturnStepped
		if chosen.cheap {
			chosen.cost = costReturn
		}
	}
	return p.at(want.point, s, chosen)
}

// idleBytes is the size of a function that can only return: waiting takes a loop and a jump
// over it.
const idleBytes = 8

// idle reports whether a function does nothing.
func (p part) idle(name string) bool {
	s, ok := p.object.function(name)
	return ok && s.size > 0 && s.size <= idleBytes
}

// at returns the place of an instruction, and reports whether it is in the file.
func (p part) at(point Point, s symbol, chosen spot) (Place, bool) {
	file, ok := p.object.fileOffset(s.address)
	return Place{
		Point: point, Image: p.image, Symbol: s.name, Address: s.address, File: file, Pushed: chosen.pushed,
		Site: optrace.Site{
			Symbol: s.name, File: p.image.Path, Offset: chosen.offset,
			Instruction: chosen.instruction, Cheap: chosen.cheap, Cost: chosen.cost,
		},
	}, ok
}

// ended are the points with an end, that end, and what replaces it if it cannot be probed.
var ended = []struct {
	point, end Point
	without    string
}{
	{PointGraph, PointGraphReturn, "graphs end with their last operator or barrier"},
	{PointDecode, PointCallEnd, "calls end with their last graph"},
	{PointProcess, PointCallEnd, "calls end with their last graph"},
	{PointEncode, PointCallEnd, "calls end with their last graph"},
}

// maxEnds is the number of returns of one function that are probed: llama_context::decode has
// fewer than twenty.
const maxEnds = 32

// ends adds the ends of graphs and calls: for a call the instruction after the inner call of a
// wrapper, or else every return of the function. They are plain probes on purpose: a return
// probe on a frame that a C++ exception passes through aborts the target. The frame of a graph
// is written in C, but C++ operators run in it.
func ends(parts []part, found []Place) ([]Place, []optrace.Gap) {
	var gaps []optrace.Gap
	for _, e := range ended {
		i := slices.IndexFunc(found, func(p Place) bool { return p.Point == e.point })
		if i < 0 {
			continue
		}
		j := slices.IndexFunc(parts, func(p part) bool { return p.image == found[i].Image })
		more := parts[j].ends(found[i].Symbol, e.point != PointGraph)
		if len(more) == 0 {
			gaps = append(gaps, optrace.Gap{
				What: "the end of " + found[i].Symbol,
				Why:  "neither an inner call nor all of its returns were found in its code",
				Next: e.without,
			})
		}
		for k := range more {
			more[k].Point, more[k].Ends = e.end, e.point
		}
		found = append(found, more...)
	}
	return found, gaps
}

// ends returns the places at which a function ends, nil if not all are known. wrapper says that
// the function may just wrap its first call.
func (p part) ends(name string, wrapper bool) []Place {
	s, _ := p.object.function(name)
	c, _ := sitesOf(p.object)
	if chosen, ok := c.after(s); ok && wrapper {
		if place, ok := p.at(PointCallEnd, s, chosen); ok {
			return []Place{place}
		}
	}
	var found []Place
	if !p.returnsOf(c, s, 0, map[uint64]bool{}, &found) || len(found) > maxEnds {
		return nil
	}
	return found
}

// returnsOf adds places at all returns of a function and of those that it ends by jumping to,
// and reports whether all of the code could be read. Jumps to addresses without a function are
// not ends: compilers move rare code away, and it returns or throws.
func (p part) returnsOf(c sites, s symbol, depth int, had map[uint64]bool, found *[]Place) bool {
	if had[s.address] {
		return true
	}
	had[s.address] = true
	at, tails, ok := c.returns(s)
	if !ok || depth > maxDepth {
		return false
	}
	for _, chosen := range at {
		if place, ok := p.at(PointCallEnd, s, chosen); ok {
			*found = append(*found, place)
		}
	}
	for _, target := range tails {
		callee, ok := p.object.symbolAt(p.object.resolve(target))
		if !ok {
			continue
		}
		if !p.returnsOf(c, callee, depth+1, had, found) {
			return false
		}
	}
	return true
}
