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

// probe is how a point is probed.
type probe struct {
	detail  optrace.Detail
	kind    optrace.Kind
	program string // a key of Session.programs
	ref     uint32 // Ref of its events, 0 if it depends on the record
}

// probes are the probes by point. llama_process(ctx, kind, batch) takes a llama_batch_ext by
// address, a C++ object whose layout nothing exported reveals: its tokens are those of its
// graph.
var probes = map[layouts.Point]probe{
	layouts.PointOp:            {optrace.DetailOperator, optrace.OpBegin, "operator", 0},
	layouts.PointOpOld:         {optrace.DetailOperator, optrace.OpBegin, "operator", 0},
	layouts.PointOpEach:        {optrace.DetailOperator, optrace.OpBegin, "operator", 0},
	layouts.PointOpFused:       {optrace.DetailOperator, optrace.FusedBegin, "fused", 0},
	layouts.PointGraph:         {optrace.DetailGraph, optrace.GraphBegin, "graph", 0},
	layouts.PointGraphReturn:   {optrace.DetailGraph, optrace.GraphEnd, "mark", 0},
	layouts.PointBarrier:       {optrace.DetailBarrier, optrace.BarrierBegin, "mark", 0},
	layouts.PointBarrierReturn: {optrace.DetailBarrier, optrace.BarrierEnd, "mark", 0},
	layouts.PointSplit:         {optrace.DetailBackend, optrace.SplitBegin, "split", 0},
	layouts.PointTensorSet:     {optrace.DetailBackend, optrace.CopyBegin, "transfer", uint32(optrace.CopySet)},
	layouts.PointTensorGet:     {optrace.DetailBackend, optrace.CopyBegin, "transfer", uint32(optrace.CopyGet)},
	layouts.PointTensorCopy:    {optrace.DetailBackend, optrace.CopyBegin, "copy", uint32(optrace.CopyAcross)},
	layouts.PointDecode:        {optrace.DetailToken, optrace.CallBegin, "call", uint32(optrace.CallDecode)},
	layouts.PointProcess:       {optrace.DetailToken, optrace.CallBegin, "mark", uint32(optrace.CallProcess)},
	layouts.PointEncode:        {optrace.DetailToken, optrace.CallBegin, "call", uint32(optrace.CallEncode)},
	layouts.PointCallEnd:       {optrace.DetailToken, optrace.CallEnd, "mark", 0},
	layouts.PointSample:        {optrace.DetailSample, optrace.SampleBegin, "mark", 0},
}

// group is the places of one link: those of one file with one program.
type group struct {
	groupKey
	offsets []uint64
	cookies []uint64
	links   []link.Link
}

// groupKey identifies a group. ret says that its probes are return probes, which are safe only
// for functions without C++ in their frames.
type groupKey struct {
	image   *layouts.Image
	program string
	ret     bool
	detail  optrace.Detail
}

// groupPlaces groups places by link, and returns what the decoder must know of each place.
func groupPlaces(places []layouts.Place) (groups []*group, refs []watched) {
	found := map[groupKey]*group{}
	refs = make([]watched, len(places))
	for i := range places {
		p := &places[i]
		how, ok := probes[p.Point]
		if !ok || p.Image == nil {
			continue
		}
		refs[i] = watched{ref: how.ref}
		key := groupKey{p.Image, how.program, p.Point == layouts.PointBarrierReturn, how.detail}
		// The arguments are (backend, tensor, data, offset, size) instead of (tensor, data, offset, size), ggml-backend.h.
		if how.program == "transfer" && strings.Contains(p.Symbol, "_async") {
			key.program = "transfer_async"
		}
		g := found[key]
		if g == nil {
			g = &group{groupKey: key}
			found[key] = g
			groups = append(groups, g)
		}
		g.offsets = append(g.offsets, p.File+p.Site.Offset)
		g.cookies = append(g.cookies, cookie(how.kind, i, p.Pushed))
	}
	return groups, refs
}

// programs are the loaded programs, by name.
type programs map[string]*ebpf.Program

// loadProbes loads the programs for a set of groups.
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
		p, err := loadProbe("rooftop_"+g.program, newProgram(g.program, c, o, task), multi)
		if err != nil {
			return nil, errors.Join(err, loaded.close())
		}
		loaded[g.program] = p
	}
	return loaded, nil
}

// newProgram returns the instructions of a program by its name.
func newProgram(name string, c *code, o *offsets, task *taskOffsets) asm.Instructions {
	switch name {
	case "operator", "fused":
		return operator(c, o, name == "fused", task)
	case "graph":
		return graph(c, o)
	case "call":
		return call(c)
	case "split":
		return split(c, o)
	case "transfer":
		return transfer(c, o, 0, 3)
	case "transfer_async":
		return transfer(c, o, 1, 4)
	case "copy":
		return transfer(c, o, 0, -1)
	}
	return mark(c)
}

// graphsSeen reports whether the begins of graphs are probed in each file with operators.
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

// files are the open files that probes are attached to. They stay open, since their paths may
// later name other files.
type files map[*layouts.Image]*os.File

// openFiles opens the files of groups, and fails if they are not the ones that were read.
func openFiles(groups []*group) (files, error) {
	opened := files{}
	for _, g := range groups {
		if opened[g.image] != nil {
			continue
		}
		f, err := g.image.Reopen()
		if err != nil {
			return nil, errors.Join(err, opened.close())
		}
		opened[g.image] = f
	}
	return opened, nil
}

// path returns the name by which the kernel finds the open file itself.
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

// attach attaches a group to its open file.
func (g *group) attach(opened files, p *ebpf.Program, by means) error {
	if len(g.links) > 0 {
		return nil
	}
	ex, err := link.OpenExecutable(opened.path(g.image))
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

// detach removes the probes.
func (g *group) detach() error {
	links := g.links
	g.links = nil
	return closeLinks(links)
}

// closeLinks closes links concurrently: each close waits until no CPU runs its program, and all
// wait for the same moment.
func closeLinks(links []link.Link) error {
	all := make([]error, len(links))
	var wait sync.WaitGroup
	for i, l := range links {
		wait.Go(func() { all[i] = l.Close() })
	}
	wait.Wait()
	return errors.Join(all...)
}
