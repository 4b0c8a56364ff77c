//go:build amd64 || arm64

package ggml

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	layouts "github.com/rooftop-dev/rooftop/collect/ggml/binary"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

func TestParseMappings(t *testing.T) {
	raw := `7f0000000000-7f0000001000 r--p 00000000 08:01 42                         /opt/a b/libggml-cpu.so
7f0000001000-7f0000003000 r-xp 00001000 08:01 42                         /opt/a b/libggml-cpu.so (deleted)
7f0000003000-7f0000004000 rw-p 00000000 00:00 0                          [heap]
nonsense
7f0000004000-x r-xp 00000000 08:01 43 /bad
`
	want := []mapping{
		{start: 0x7f0000000000, end: 0x7f0000001000, path: "/opt/a b/libggml-cpu.so"},
		{start: 0x7f0000001000, end: 0x7f0000003000, offset: 0x1000, execute: true, path: "/opt/a b/libggml-cpu.so (deleted)"},
	}
	if diff := cmp.Diff(want, parseMappings([]byte(raw)), cmp.AllowUnexported(mapping{})); diff != "" {
		t.Error(diff)
	}
}

func FuzzMappings(f *testing.F) {
	f.Add([]byte("7f0000000000-7f0000001000 r-xp 00000000 08:01 42 /lib/x.so\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, m := range parseMappings(raw) {
			if m.path == "" {
				t.Error("a mapping without a file")
			}
		}
	})
}

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
		"/x/libggml-cuda.so": "CUDA", "/x/libggml-cpu-sapphirerapids.so": "CPU", "/x/libggml-vulkan.so.0 (deleted)": "VULKAN", "/usr/bin/ollama": "ollama",
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

// Without privileges too every rung says what it found, and each that is missing what a
// trace lacks and what to do.
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

// Every point that can be attached to has a program, and a return probe only sits on
// the barrier, which calls nothing of C++: an exception that passes one ends the target.
func TestPointsHavePrograms(t *testing.T) {
	image := &layouts.Image{Path: "/a.so", Open: "/a.so"}
	var places []layouts.Place
	for p := range layouts.NumPoints {
		places = append(places, layouts.Place{Point: p, Image: image, Symbol: "f", File: uint64(p) * 16})
	}
	groups, refs := groupPlaces(places)
	seen := 0
	for _, g := range groups {
		seen += len(g.offsets)
		for _, c := range g.cookies {
			point := places[uint16(c>>16)].Point
			if g.ret != (point == layouts.PointBarrierReturn) {
				t.Errorf("point %d: return %v", point, g.ret)
			}
			if kind := optrace.Kind(c); kind == 0 || kind >= recordNode {
				t.Errorf("point %d has the kind %d", point, kind)
			}
		}
	}
	if seen != int(layouts.NumPoints) || len(refs) != len(places) {
		t.Errorf("%d of %d points", seen, layouts.NumPoints)
	}
	if refs[layouts.PointEncode].ref != uint32(optrace.CallEncode) || refs[layouts.PointTensorGet].ref != uint32(optrace.CopyGet) {
		t.Errorf("%v", refs)
	}
}

func TestOffsetsOfALayout(t *testing.T) {
	x := readFixture(t)
	o := offsetsOf(&x.Layout, &x.Names, 320)
	if !o.experts() || !o.graph() || o.mulMatID != 30 {
		t.Errorf("%+v", o)
	}
	x.Layout.GraphNodes, x.Names.Ops = -1, nil
	if o = offsetsOf(&x.Layout, &x.Names, 320); o.experts() || o.graph() {
		t.Errorf("%+v", o)
	}
}

// The next hook takes the place of the one that is never called; the others stay.
func TestLowerHook(t *testing.T) {
	r := &layouts.Runtime{
		Hook:   layouts.PointOp,
		Places: []layouts.Place{{Point: layouts.PointOp}, {Point: layouts.PointOpFused}, {Point: layouts.PointGraph}},
		Lower:  []layouts.Place{{Point: layouts.PointOpOld}, {Point: layouts.PointOpEach}, {Point: layouts.PointOpEach}},
	}
	next, ok := lowerHook(r)
	if !ok || next.Hook != layouts.PointOpOld || len(next.Places) != 2 || len(next.Lower) != 2 {
		t.Fatalf("%+v", next)
	}
	next, ok = lowerHook(next)
	if !ok || next.Hook != layouts.PointOpEach || len(next.Places) != 3 || len(next.Lower) != 0 {
		t.Fatalf("%+v", next)
	}
	if _, ok = lowerHook(next); ok {
		t.Error("the ladder has an end")
	}
}
