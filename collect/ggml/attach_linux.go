//go:build amd64 || arm64

package ggml

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	layouts "github.com/rooftop-dev/rooftop/collect/ggml/binary"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// probe is how a point is watched.
type probe struct {
	detail  optrace.Detail
	kind    optrace.Kind
	program string // a key of Session.programs
	ret     bool   // of the return, which must be that of a function in whose frame no C++ runs
	ref     uint32 // what Ref of its events is, where it says one
}

// probeOf is how to watch a place; false where it is none that is watched.
func probeOf(p *layouts.Place) (probe, bool) {
	switch p.Point {
	case layouts.PointOp, layouts.PointOpOld, layouts.PointOpEach:
		return probe{optrace.DetailOperator, optrace.OpBegin, "operator", false, 0}, true
	case layouts.PointOpFused:
		return probe{optrace.DetailOperator, optrace.FusedBegin, "fused", false, 0}, true
	case layouts.PointGraph:
		return probe{optrace.DetailGraph, optrace.GraphBegin, "graph", false, 0}, true
	case layouts.PointGraphReturn:
		return probe{optrace.DetailGraph, optrace.GraphEnd, "mark", false, 0}, true
	case layouts.PointBarrier:
		return probe{optrace.DetailBarrier, optrace.BarrierBegin, "mark", false, 0}, true
	case layouts.PointBarrierReturn:
		return probe{optrace.DetailBarrier, optrace.BarrierEnd, "mark", true, 0}, true
	case layouts.PointSplit:
		return probe{optrace.DetailBackend, optrace.SplitBegin, "split", false, 0}, true
	case layouts.PointTensorSet:
		return probe{optrace.DetailBackend, optrace.CopyBegin, transferOf(p), false, uint32(optrace.CopySet)}, true
	case layouts.PointTensorGet:
		return probe{optrace.DetailBackend, optrace.CopyBegin, transferOf(p), false, uint32(optrace.CopyGet)}, true
	case layouts.PointTensorCopy:
		return probe{optrace.DetailBackend, optrace.CopyBegin, "copy", false, uint32(optrace.CopyAcross)}, true
	case layouts.PointDecode:
		return probe{optrace.DetailToken, optrace.CallBegin, "call", false, uint32(optrace.CallDecode)}, true
	case layouts.PointProcess:
		// llama_process(ctx, kind, batch) takes a llama_batch_ext by its address, an object
		// of C++ that nothing exported tells the size of: its tokens are those of its graph.
		return probe{optrace.DetailToken, optrace.CallBegin, "mark", false, uint32(optrace.CallProcess)}, true
	case layouts.PointEncode:
		return probe{optrace.DetailToken, optrace.CallBegin, "call", false, uint32(optrace.CallEncode)}, true
	case layouts.PointCallEnd:
		return probe{optrace.DetailToken, optrace.CallEnd, "mark", false, 0}, true
	case layouts.PointSample:
		return probe{optrace.DetailSample, optrace.SampleBegin, "mark", false, 0}, true
	}
	return probe{}, false
}

// transferOf tells (tensor, data, offset, size) from (backend, tensor, data, offset,
// size), ggml-backend.h.
func transferOf(p *layouts.Place) string {
	if strings.Contains(p.Symbol, "_async") {
		return "transfer_async"
	}
	return "transfer"
}

// group is what one link holds: places of one file with one program.
type group struct {
	detail  optrace.Detail
	image   *layouts.Image
	program string
	ret     bool
	hook    layouts.Point // of operators, else 0
	isHook  bool
	offsets []uint64
	cookies []uint64
	links   []link.Link
}

// groupPlaces sorts places into links.
func groupPlaces(places []layouts.Place) (groups []*group, refs []watched) {
	type key struct {
		image   *layouts.Image
		program string
		ret     bool
		detail  optrace.Detail
		hook    layouts.Point
	}
	found := map[key]*group{}
	refs = make([]watched, len(places))
	for i := range places {
		p := &places[i]
		how, ok := probeOf(p)
		if !ok || p.Image == nil {
			continue
		}
		refs[i] = watched{ref: how.ref}
		k := key{image: p.Image, program: how.program, ret: how.ret, detail: how.detail}
		isHook := how.kind == optrace.OpBegin
		if isHook {
			k.hook = p.Point
		}
		g := found[k]
		if g == nil {
			g = &group{detail: how.detail, image: k.image, program: k.program, ret: k.ret, hook: k.hook, isHook: isHook}
			found[k] = g
			groups = append(groups, g)
		}
		g.offsets = append(g.offsets, p.File+p.Site.Offset)
		g.cookies = append(g.cookies, cookie(how.kind, i, p.Pushed))
	}
	return groups, refs
}

// programs are the loaded programs by name.
type programs map[string]*ebpf.Program

// loadProbes loads the programs that a set of groups needs.
func loadProbes(groups []*group, m *maps, o *offsets, task *taskOffsets, multi bool) (programs, error) {
	loaded := programs{}
	cookies := map[string][]uint64{}
	for _, g := range groups {
		cookies[g.program] = append(cookies[g.program], g.cookies...)
	}
	graphs := graphsSeen(groups)
	for _, g := range groups {
		if loaded[g.program] != nil {
			continue
		}
		c := &code{maps: m, graphs: graphs}
		if all := cookies[g.program]; len(all) == 1 {
			c.only = &all[0]
		}
		var ins asm.Instructions
		switch g.program {
		case "operator":
			ins = operator(c, o, false, task)
		case "fused":
			ins = operator(c, o, true, task)
		case "graph":
			ins = graph(c, o)
		case "mark":
			ins = mark(c)
		case "call":
			ins = call(c)
		case "split":
			ins = split(c, o)
		case "transfer":
			ins = transfer(c, o, 0, 3)
		case "transfer_async":
			ins = transfer(c, o, 1, 4)
		case "copy":
			ins = transfer(c, o, 0, -1)
		}
		p, err := loadProbe("rooftop_"+g.program, ins, multi)
		if err != nil {
			return nil, errors.Join(err, loaded.close())
		}
		loaded[g.program] = p
	}
	return loaded, nil
}

// graphsSeen says that each file with operators has its begins of graphs watched too.
func graphsSeen(groups []*group) bool {
	begins := map[*layouts.Image]bool{}
	for _, g := range groups {
		if g.program == "graph" {
			begins[g.image] = true
		}
	}
	return !slices.ContainsFunc(groups, func(g *group) bool { return g.detail == optrace.DetailOperator && !begins[g.image] })
}

func (p programs) close() error {
	var all []error
	for _, one := range p {
		all = append(all, one.Close())
	}
	return errors.Join(all...)
}

// files are the files that are attached to, held open: what has their names later may
// be others.
type files map[*layouts.Image]*os.File

// openFiles opens the files of groups, which must be those that were read.
func openFiles(groups []*group) (files, error) {
	held := files{}
	for _, g := range groups {
		if held[g.image] != nil {
			continue
		}
		f, err := g.image.Again()
		if err != nil {
			return nil, errors.Join(err, held.close())
		}
		held[g.image] = f
	}
	return held, nil
}

// path is the name under which the kernel finds the open file itself.
func (f files) path(image *layouts.Image) string {
	return fmt.Sprintf("/proc/self/fd/%d", f[image].Fd())
}

func (f files) close() error {
	var all []error
	for _, one := range f {
		all = append(all, one.Close())
	}
	return errors.Join(all...)
}

// attach attaches a group to its file, which is open.
func (g *group) attach(held files, p *ebpf.Program, by means) error {
	if len(g.links) > 0 {
		return nil
	}
	ex, err := link.OpenExecutable(held.path(g.image))
	if err != nil {
		return err
	}
	if by.multi {
		options := &link.UprobeMultiOptions{Addresses: g.offsets, Cookies: g.cookies, PID: uint32(by.pid)}
		open := ex.UprobeMulti
		if g.ret {
			open = ex.UretprobeMulti
		}
		l, err := open(nil, p, options)
		if err != nil {
			return fmt.Errorf("attach to %s: %w", g.image.Path, err)
		}
		g.links = []link.Link{l}
		return nil
	}
	for i := range g.offsets {
		options := &link.UprobeOptions{Address: g.offsets[i], Cookie: g.cookies[i], PID: by.pid}
		open := ex.Uprobe
		if g.ret {
			open = ex.Uretprobe
		}
		l, err := open("", p, options)
		if err != nil {
			return errors.Join(fmt.Errorf("attach to %s: %w", g.image.Path, err), g.detach())
		}
		g.links = append(g.links, l)
	}
	return nil
}

// detach takes the probes off.
func (g *group) detach() error {
	links := g.links
	g.links = nil
	return closeLinks(links)
}

// closeLinks closes links side by side: each waits until no CPU runs its program any
// more, and they wait for the same.
func closeLinks(links []link.Link) error {
	all := make([]error, len(links))
	var wait sync.WaitGroup
	for i, l := range links {
		wait.Go(func() { all[i] = l.Close() })
	}
	wait.Wait()
	return errors.Join(all...)
}
