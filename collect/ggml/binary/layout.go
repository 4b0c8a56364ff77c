package binary

import (
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// knownLayout is a layout from GGML's history, determined by compiling offsetof against all
// commits that touched its headers (2023-12 to 2026-08). Forks may differ.
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
}

// fields returns pointers to a layout's offsets, in a fixed order.
func (l *Layout) fields() []*int {
	return []*int{&l.Type, &l.NE, &l.NB, &l.Op, &l.Params, &l.Flags, &l.Src, &l.View, &l.Data, &l.Name, &l.GraphNodes, &l.GraphCount}
}

// Complete reports whether every field that is needed to read a tensor is known.
func (l *Layout) Complete() bool {
	for _, f := range l.fields() {
		if *f < 0 {
			return false
		}
	}
	return l.Slots > 0 && l.Slots <= maxSlots
}

// Bytes returns how many bytes of a tensor contain everything that is read, 0 if the layout is
// incomplete. It is 320 since 2024-11, and at most [MaxTensorBytes].
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

// MaxTensorBytes is the largest result of [Layout.Bytes]: a layout with a larger offset is
// rejected.
const MaxTensorBytes = 512

// agrees reports whether the known offsets of l equal those of known, and how many do.
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

// fill copies unknown fields from another layout, and reports whether it copied any.
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

// minAgreeing is the number of known offsets from which the others are taken from the table of
// versions: NE, NB, Op, Params and the graph's are the same in every version.
const minAgreeing = 4

// fromTable fills a layout from the version that it agrees with, and reports whether it did. If
// no accessor identifies it, version does: ggml_version exists since 2025-07.
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

// isVersion reports whether a text is a version number ("0.25.1").
func isVersion(s string) bool {
	return s != "" && s[0] >= '0' && s[0] <= '9' && strings.Contains(s, ".")
}

// layout returns the layout of tensors and graphs in a file: from accessors, or else from the
// table of versions. Offsets that remain unknown are a gap.
func (o *object) layout() (Layout, []optrace.Gap) {
	l := o.accessorLayout()
	l.From = "accessors"
	if !l.Complete() && l.fromTable(o.version()) {
		l.From = "version table"
	}
	if l.Complete() && l.Bytes() > 0 {
		return l, nil
	}
	return l, []optrace.Gap{{
		What: "names and shapes of operators",
		Why: fmt.Sprintf("the offsets of ggml_tensor could not be read: %s unknown after its accessors and the table of versions",
			strings.Join(l.missing(), ", ")),
		Next: "trace at the level graph, or use a build that exports ggml_get_name and similar functions",
	}}
}

// missing returns the names of the unknown fields.
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

// version returns the result of ggml_version, "" if there is no such function or it does not
// return a constant.
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

// isPlain reports whether a text is printable ASCII and not empty.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return s != ""
}
