//go:build amd64 || arm64

package ggml

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/collect/ggml/binary"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

func TestConstantReturned(t *testing.T) {
	plain := []byte{0x48, 0x8d, 0x05, 0x10, 0, 0, 0, 0xc3}
	back := []byte{0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8d, 0x05, 0xf0, 0xff, 0xff, 0xff, 0xc3}
	for _, c := range []struct {
		code []byte
		want uint64
		ok   bool
	}{
		{plain, 0x1017, true}, {back, 0x1000 + 11 - 16, true}, {plain[:7], 0, false}, {nil, 0, false},
		{[]byte{0x48, 0x8b, 0x05, 0x10, 0, 0, 0, 0xc3}, 0, false}, {append(plain[:7:7], 0x90), 0, false},
	} {
		if got, ok := constantReturned(c.code, 0x1000); got != c.want || ok != c.ok {
			t.Errorf("% x: %#x %v", c.code, got, ok)
		}
	}
}

func TestBackendOfFile(t *testing.T) {
	for path, want := range map[string]string{
		"/x/libggml-cuda.so": "CUDA", "/x/libggml-cpu-sapphirerapids.so": "CPU", "/x/libggml-vulkan.so.0": "VULKAN", "/usr/bin/ollama": "ollama",
	} {
		if got := backendOfFile(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestAtLeast(t *testing.T) {
	for release, want := range map[string]bool{
		"6.18.44-fc-v669": true, "5.17.0": true, "5.17-rc1": true, "5.16.20": false, "4.19.0-26-amd64": false, "6": false, "": false, "x.y": false, "10.0": true,
	} {
		if got := atLeast(release, 5, 17); got != want {
			t.Errorf("%q: %v", release, got)
		}
	}
}

// Even without privileges every rung has what was found, and each missing one has what a trace
// lacks and the next step.
func TestLadderSaysWhatToDo(t *testing.T) {
	rungs := Ladder()
	for _, r := range rungs {
		if r.Name == "" || r.Found == "" {
			t.Errorf("%+v", r)
		}
		if !r.OK && (r.Missing == "" || r.Next == "") {
			t.Errorf("%+v", r)
		}
		if strings.Contains(r.Found+r.Missing+r.Next, "\n") {
			t.Errorf("more than a line: %+v", r)
		}
	}
	if err := permitted(); err != nil && strings.Count(err.Error(), "\n") > 0 {
		t.Error(err)
	}
}

// Every point that can be attached has a program. Only the barrier, which calls no C++, has a
// return probe: an exception that passes one ends the target.
func TestPointsHavePrograms(t *testing.T) {
	image := &binary.Image{Path: "/a.so", Open: "/a.so"}
	var places []binary.Place
	for p := range binary.NumPoints {
		places = append(places, binary.Place{Point: p, Image: image, Symbol: "f", File: uint64(p) * 16})
	}
	groups, refs := groupPlaces(places)
	seen := 0
	for _, g := range groups {
		seen += len(g.offsets)
		for _, c := range g.cookies {
			point := places[uint16(c>>16)].Point
			if g.ret != (point == binary.PointBarrierReturn) {
				t.Errorf("point %d: return %v", point, g.ret)
			}
			if kind := optrace.Kind(c); kind == 0 || kind >= recordNode {
				t.Errorf("point %d has the kind %d", point, kind)
			}
		}
	}
	if seen != int(binary.NumPoints) || len(refs) != len(places) {
		t.Errorf("%d of %d points", seen, binary.NumPoints)
	}
	if refs[binary.PointEncode].ref != uint32(optrace.CallEncode) || refs[binary.PointTensorGet].ref != uint32(optrace.CopyGet) {
		t.Errorf("%v", refs)
	}
}

func TestOffsetsOfALayout(t *testing.T) {
	x := readFixture(t)
	o := offsetsOf(x.Layout, x.Names.Ops, 320)
	if !o.experts() || !o.graph() || o.mulMatID != 30 {
		t.Errorf("%+v", o)
	}
	x.Layout.GraphNodes, x.Names.Ops = -1, nil
	if o = offsetsOf(x.Layout, x.Names.Ops, 320); o.experts() || o.graph() {
		t.Errorf("%+v", o)
	}
}

// The next hook replaces the one that is never called; other places are kept.
func TestLowerHook(t *testing.T) {
	r := &binary.Runtime{
		Hook:   binary.PointOp,
		Places: []binary.Place{{Point: binary.PointOp}, {Point: binary.PointOpFused}, {Point: binary.PointGraph}},
		Lower:  []binary.Place{{Point: binary.PointOpOld}, {Point: binary.PointOpEach}, {Point: binary.PointOpEach}},
	}
	next, ok := lowerHook(r)
	if !ok || next.Hook != binary.PointOpOld || len(next.Places) != 2 || len(next.Lower) != 2 {
		t.Fatalf("%+v", next)
	}
	next, ok = lowerHook(next)
	if !ok || next.Hook != binary.PointOpEach || len(next.Places) != 3 || len(next.Lower) != 0 {
		t.Fatalf("%+v", next)
	}
	if _, ok = lowerHook(next); ok {
		t.Error("the ladder has an end")
	}
}
