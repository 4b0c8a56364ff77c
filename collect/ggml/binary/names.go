package binary

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// Limits of tables of names. GGML has about 100 operators, 40 types and 20 unary
// functions; numbers grow by some each year.
const (
	maxNames    = 512
	maxTypes    = 256
	maxUnnamed  = 8    // numbers in a row that were given up and have no name
	maxBlock    = 4096 // elements; the largest is 256
	maxBytes    = 1 << 16
	maxNameText = 64
)

// nameTable is an array in a file: element i begins at address + i×stride.
type nameTable struct{ address, stride uint64 }

// tableOf finds the array that a function indexes with its argument: what it returns
// lies at base + stride × argument.
func (o *object) tableOf(name string) (nameTable, bool) {
	for _, v := range o.follow(name).returns {
		if v.kind == loaded && v.size == pointerBytes && v.c > 0 && v.a >= pointerBytes && v.a < maxOffset {
			return nameTable{uint64(v.c), uint64(v.a)}, true
		}
	}
	return nameTable{}, false
}

// tableAt finds an array by the symbol of the data itself, which files have that are
// not stripped.
func (o *object) tableAt(name string) (nameTable, bool) {
	s, ok := o.symbols[name]
	return nameTable{s.address, pointerBytes}, ok && s.object && s.address != 0
}

// names reads the names behind GGML's numbers.
func (o *object) names() (Names, []optrace.Gap) {
	tables := map[string]nameTable{}
	for name, data := range map[string]string{
		"ggml_op_name": "GGML_OP_NAME", "ggml_unary_op_name": "GGML_UNARY_OP_NAME", "ggml_glu_op_name": "GGML_GLU_OP_NAME",
		"ggml_type_name": "", "ggml_blck_size": "", "ggml_type_size": "", "ggml_op_symbol": "",
	} {
		t, ok := o.tableOf(name)
		if !ok && data != "" {
			t, ok = o.tableAt(data)
		}
		if ok {
			tables[name] = t
		}
	}
	if _, ok := tables["ggml_op_name"]; !ok {
		if t, ok := o.searchOps(); ok {
			tables["ggml_op_name"] = t
		}
	}
	n := Names{
		Ops:   o.readNames(tables, "ggml_op_name"),
		Unary: o.readNames(tables, "ggml_unary_op_name"),
		GLU:   o.readNames(tables, "ggml_glu_op_name"),
	}
	var gaps []optrace.Gap
	if len(n.Ops) == 0 {
		gaps = append(gaps, optrace.Gap{
			What: "names of operators", Why: "the file shows no table of them: neither ggml_op_name nor the run NONE, DUP, ADD was found",
			Next: "operators are counted and timed without names",
		})
	}
	var more []optrace.Gap
	n.Types, more = o.types(tables)
	return n, append(gaps, more...)
}

// end is where a table has to end because another begins.
func end(tables map[string]nameTable, t nameTable) uint64 {
	last := t.address + maxNames*t.stride
	for _, other := range tables {
		if other.address > t.address && other.address < last && other.address-t.address >= t.stride {
			last = other.address
		}
	}
	return last
}

// readNames reads a table of upper-case names. It ends at the first thing that is no
// such name, at one that was there before, and where another table begins: tables run
// on into others.
func (o *object) readNames(tables map[string]nameTable, name string) []string {
	t, ok := tables[name]
	if !ok || t.stride != pointerBytes {
		return nil
	}
	var found []string
	had := map[string]bool{}
	for at := t.address; at < end(tables, t) && len(found) < maxNames; at += t.stride {
		to, _ := o.pointer(at)
		s := ""
		if to != 0 {
			s = o.text(to)
		}
		if !isOpName(s) || had[s] {
			break
		}
		had[s] = true
		found = append(found, s)
	}
	return found
}

// isOpName says whether a text is written as GGML writes names of operators.
func isOpName(s string) bool {
	if s == "" || len(s) >= maxNameText {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}

// firstOps are the operators that GGML's table has always begun with.
var firstOps = [...]string{"NONE", "DUP", "ADD"}

// searchOps finds the table of operators without any symbol: three relocations side by
// side that lead to its first names.
func (o *object) searchOps() (nameTable, bool) {
	o.pointer(0) // reads the relocations
	for i := range o.relocations {
		if i+len(firstOps) > len(o.relocations) {
			break
		}
		if o.beginsOps(o.relocations[i : i+len(firstOps)]) {
			return nameTable{o.relocations[i].at, pointerBytes}, true
		}
	}
	return nameTable{}, false
}

func (o *object) beginsOps(run []relocation) bool {
	for i := range run {
		if run[i].at != run[0].at+uint64(pointerBytes*i) {
			return false
		}
	}
	for i, name := range firstOps {
		if o.text(run[i].to) != name {
			return false
		}
	}
	return true
}

// types reads GGML's number formats. Where the file does not show them the built-in
// list is taken: numbers of formats are given once and never change.
func (o *object) types(tables map[string]nameTable) ([]Type, []optrace.Gap) {
	names, okNames := tables["ggml_type_name"]
	blocks, okBlocks := tables["ggml_blck_size"]
	bytes, okBytes := tables["ggml_type_size"]
	if okNames && okBlocks && okBytes && names.stride == blocks.stride && names.stride == bytes.stride {
		found := o.readTypes(tables, names, blocks.address-names.address, bytes.address-names.address)
		if different := differing(found); len(found) > 0 && different == "" {
			return found, nil
		} else if len(found) > 0 {
			return found, []optrace.Gap{{
				What: "number formats", Why: fmt.Sprintf("the file describes %s otherwise than GGML does; the file is believed", different),
			}}
		}
	}
	return builtinTypes(), []optrace.Gap{{
		What: "number formats", Why: "the file shows no table of them; GGML's own list of 2026-08 is taken (assumption)",
	}}
}

func (o *object) readTypes(tables map[string]nameTable, t nameTable, block, bytes uint64) []Type {
	var found []Type
	last, size := end(tables, nameTable{t.address, max(t.stride, block, bytes)}), uint64(0)
	if s, ok := o.symbols["type_traits"]; ok && s.object && s.address <= t.address && t.address-s.address < t.stride {
		size = s.size / t.stride
	}
	for i := uint64(0); i < maxTypes && (size == 0 || i < size); i++ {
		at := t.address + i*t.stride
		if at+t.stride > last {
			break
		}
		one, ok := o.readType(at, block, bytes)
		if !ok {
			break
		}
		found = append(found, one)
	}
	for len(found) > 0 && found[len(found)-1].Name == "" {
		found = found[:len(found)-1]
	}
	return found
}

// readType reads one number format, and says whether there can be one. The zero type is
// a number that was given up.
func (o *object) readType(at, block, bytes uint64) (Type, bool) {
	to, _ := o.pointer(at)
	elements, moved := o.pointer(at + block)
	size, movedToo := o.pointer(at + bytes)
	if moved || movedToo || elements > maxBlock || size > maxBytes {
		return Type{}, false
	}
	t := Type{Block: int(elements), Bytes: int(size)} //nolint:gosec // bounded above
	if to == 0 {
		return t, elements == 0 && size == 0
	}
	t.Name = o.text(to)
	ok := isPlain(t.Name)
	if t.Block == 0 || t.Bytes == 0 {
		t = Type{} // removed: its name says so in a sentence
	}
	return t, ok
}
