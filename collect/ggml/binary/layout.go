package binary

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// knownLayout is a layout of GGML's own history, found by compiling offsetof against
// all commits that touched its headers (2023-12 to 2026-08). Forks may differ.
type knownLayout struct {
	since  string
	layout Layout
}

// knownLayouts are sorted from the newest to the oldest.
var knownLayouts = []knownLayout{
	{"2024-11", Layout{
		NE: 16, NB: 48, Op: 80, Params: 84, Flags: 148, Src: 152, View: 232, Data: 248, Name: 256, Size: 336,
		Slots: defaultSlots, GraphCount: 4, GraphNodes: 16,
	}},
	{"2024-06", Layout{
		NE: 16, NB: 48, Op: 80, Params: 84, Flags: 148, Src: 160, View: 240, Data: 256, Name: 264, Size: 336,
		Slots: defaultSlots, GraphCount: 4, GraphNodes: 16,
	}},
	{"2024-02", Layout{
		NE: 16, NB: 48, Op: 80, Params: 84, Flags: 148, Src: 160, View: 264, Data: 280, Name: 288, Size: 368,
		Slots: defaultSlots, GraphCount: 4, GraphNodes: 16,
	}},
}

// fields are a layout's offsets, in a fixed order.
func (l *Layout) fields() []*int {
	return []*int{&l.Type, &l.NE, &l.NB, &l.Op, &l.Params, &l.Flags, &l.Src, &l.View, &l.Data, &l.Name, &l.GraphNodes, &l.GraphCount}
}

// Complete says that every field that a tensor is read by is known.
func (l *Layout) Complete() bool {
	for _, f := range l.fields() {
		if *f < 0 {
			return false
		}
	}
	return l.Slots > 0 && l.Slots <= maxSlots
}

// Bytes is how many bytes of a tensor hold everything that is read of it, 0 where the
// layout is not complete. It is 320 from 2024-11 on, at most [MaxTensorBytes].
func (l *Layout) Bytes() int {
	if l.Slots <= 0 || l.Slots > maxSlots {
		return 0
	}
	most := 0
	for _, end := range [...]struct{ at, size int }{
		{l.Type, 4}, {l.NE, 8 * dimensions}, {l.NB, 8 * dimensions}, {l.Op, 4}, {l.Params, paramsBytes}, {l.Flags, 4},
		{l.Src, pointerBytes * l.Slots}, {l.View, pointerBytes}, {l.Data, pointerBytes}, {l.Name, nameBytes},
	} {
		if end.at < 0 || end.at > MaxTensorBytes {
			return 0
		}
		most = max(most, end.at+end.size)
	}
	if most > MaxTensorBytes {
		return 0
	}
	return most
}

// MaxTensorBytes is the most that [Layout.Bytes] returns: a layout with a field that
// lies farther is not believed.
const MaxTensorBytes = 512

// agrees says whether all that two layouts both know is the same, and how many offsets
// that are.
func (l *Layout) agrees(known *Layout) (same int, ok bool) {
	mine, theirs := l.fields(), known.fields()
	for i, f := range mine {
		if *f < 0 {
			continue
		}
		if *f != *theirs[i] {
			return same, false
		}
		same++
	}
	return same, true
}

// fill takes what is not known from another layout, and says whether it took anything.
func (l *Layout) fill(from *Layout) bool {
	took := false
	theirs := from.fields()
	for i, f := range l.fields() {
		if *f < 0 && *theirs[i] >= 0 {
			*f, took = *theirs[i], true
		}
	}
	if l.Slots == 0 && from.Slots > 0 {
		l.Slots, took = from.Slots, true
	}
	return took
}

// minAgreeing is how many offsets have to be known before the rest is taken from the
// table of versions: NE, NB, Op, Params and the graph's are the same in every version.
const minAgreeing = 4

// fromTable fills a layout from the version that it agrees with. The version tells
// where no accessor does: ggml_version exists from 2025-07 on.
func (l *Layout) fromTable(version string) bool {
	for i := range knownLayouts {
		known := &knownLayouts[i].layout
		same, ok := l.agrees(known)
		enough := same >= minAgreeing && (l.View >= 0 || l.Data >= 0 || l.Name >= 0 || l.Src >= 0)
		if ok && (enough || i == 0 && isVersion(version)) {
			took := l.fill(known)
			if l.Size == 0 {
				l.Size = known.Size
			}
			return took
		}
	}
	return false
}

// isVersion says whether a text is a version number ("0.25.1").
func isVersion(s string) bool {
	return s != "" && s[0] >= '0' && s[0] <= '9' && strings.Contains(s, ".")
}

// layout is the layout of GGML's structures in a file: from accessors, else from the
// table of versions, else from debug information. What stays unknown is a gap.
func (o *object) layout() (Layout, []optrace.Gap) {
	l, gaps := o.tensorLayout()
	if o.hasSteps(&l) {
		l.Thread = stepBytes
	}
	return l, gaps
}

// Until June 2024 operators had steps, and tensors fields of how long they took: an int
// padded, and two counts (perf_runs, perf_cycles, perf_time_us), between the sources and
// the view.
const (
	stepBytes = 4
	perfBytes = 24
)

// hasSteps says that operators are computed in steps. Where the layout does not tell it is
// told by what else was there from February 2024 on.
func (o *object) hasSteps(l *Layout) bool {
	if l.Src >= 0 && l.View >= 0 && l.Slots > 0 {
		return l.View-l.Src-pointerBytes*l.Slots == perfBytes
	}
	old := slices.ContainsFunc(slices.Collect(maps.Keys(o.symbols)), isOld)
	_, later := o.function("ggml_set_input")
	return old && !later
}

// tensorLayout is the layout of tensors and graphs.
func (o *object) tensorLayout() (Layout, []optrace.Gap) {
	l := o.accessorLayout()
	l.From = "accessors"
	if !l.Complete() && l.fromTable(o.version()) {
		l.From = "version table"
	}
	if !l.Complete() {
		if d, ok := o.debugLayout(); ok {
			d.fill(&l)
			l = d
			l.From = "DWARF"
		}
	}
	if l.Complete() && l.Bytes() > 0 {
		return l, nil
	}
	return l, []optrace.Gap{{
		What: "names and shapes of operators",
		Why: fmt.Sprintf("the offsets of ggml_tensor could not be read: %s unknown after its accessors, the table of versions and debug information",
			strings.Join(l.missing(), ", ")),
		Next: "trace at the level graph, or use a build that exports ggml_get_name and its like",
	}}
}

// missing names the fields that are not known.
func (l *Layout) missing() []string {
	names := []string{"type", "ne", "nb", "op", "op_params", "flags", "src", "view_src", "data", "name", "graph.nodes", "graph.n_nodes"}
	var found []string
	for i, f := range l.fields() {
		if *f < 0 {
			found = append(found, names[i])
		}
	}
	if l.Slots == 0 {
		found = append(found, "number of sources")
	}
	return found
}

// version is what ggml_version returns, "" where there is no such function or it
// returns no constant.
func (o *object) version() string {
	for _, v := range o.follow("ggml_version").returns {
		if v.kind == number && v.a == 0 && v.c > 0 {
			if s := o.text(uint64(v.c)); isPlain(s) {
				return s
			}
		}
	}
	return ""
}

// isPlain says whether a text is printable ASCII and not empty.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return s != ""
}
