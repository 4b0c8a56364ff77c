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
	maxBlock    = 4096 // elements; the largest is 256
	maxBytes    = 1 << 16
	maxNameText = 64
)

// nameTable is an array in a file: element i begins at address + i×stride.
type nameTable struct{ address, stride uint64 }

// indexedBy finds the array that a function indexes with its argument: its result is at base +
// stride × argument.
func (o nameTables) indexedBy(name string) (nameTable, bool) {
	for _, v := range o.follow(name).returns {
		if v.kind == loaded && v.size == pointerBytes && v.c > 0 && v.a >= pointerBytes && v.a < maxOffset {
			return nameTable{uint64(v.c), uint64(v.a)}, true
		}
	}
	return nameTable{}, false
}

// at finds an array by its own symbol, which files have unless they are stripped.
func (o nameTables) at(name string) (nameTable, bool) {
	s, ok := o.symbols[name]
	return nameTable{s.address, pointerBytes}, ok && s.object && s.address != 0
}

// nameTables are the tables of names of a file, by the function that reads them.
type nameTables struct {
	*object
	of map[string]nameTable
}

// names reads the names for GGML's numbers.
func (o *object) names() (Names, []optrace.Gap) {
	t := nameTables{o, map[string]nameTable{}}
	tables := t.of
	for name, data := range map[string]string{
		"ggml_op_name": "GGML_OP_NAME", "ggml_unary_op_name": "GGML_UNARY_OP_NAME", "ggml_glu_op_name": "GGML_GLU_OP_NAME",
		"ggml_type_name": "", "ggml_blck_size": "", "ggml_type_size": "", "ggml_op_symbol": "",
	} {
		table, ok := t.indexedBy(name)
		if !ok && data != "" {
			table, ok = t.at(data)
		}
		if ok {
			tables[name] = table
		}
	}
	if _, ok := tables["ggml_op_name"]; !ok {
		if table, ok := t.searchOps(); ok {
			tables["ggml_op_name"] = table
		}
	}
	n := Names{
		Ops:   t.readNames("ggml_op_name"),
		Unary: t.readNames("ggml_unary_op_name"),
		GLU:   t.readNames("ggml_glu_op_name"),
	}
	var gaps []optrace.Gap
	if len(n.Ops) == 0 {
		gaps = append(gaps, optrace.Gap{
			What: "names of operators", Why: "the file shows no table of them: neither ggml_op_name nor the run NONE, DUP, ADD was found",
			Next: "operators are counted and timed without names",
		})
	}
	var more []optrace.Gap
	n.Types, more = t.types()
	return n, append(gaps, more...)
}

// end returns the address where a table must end, because another begins there or by its
// largest size.
func (o nameTables) end(t nameTable) uint64 {
	last := t.address + maxNames*t.stride
	for _, other := range o.of {
		if other.address > t.address && other.address < last && other.address-t.address >= t.stride {
			last = other.address
		}
	}
	return last
}

// readNames reads a table of upper-case names. It ends at the first invalid or repeated name,
// and where another table begins, since tables are contiguous.
func (o nameTables) readNames(name string) []string {
	t, ok := o.of[name]
	if !ok || t.stride != pointerBytes {
		return nil
	}
	var found []string
	had := map[string]bool{}
	for at := t.address; at < o.end(t) && len(found) < maxNames; at += t.stride {
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

// isOpName reports whether a text has the form of GGML's names of operators.
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

// firstOps are the first operators of GGML's table in every version.
var firstOps = [...]string{"NONE", "DUP", "ADD"}

// searchOps finds the table of operators without a symbol: three consecutive relocations to its
// first names.
func (o nameTables) searchOps() (nameTable, bool) {
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

func (o nameTables) beginsOps(run []relocation) bool {
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

// types reads GGML's number formats. If the file does not show them, the built-in list is used,
// since numbers of formats never change.
func (o nameTables) types() ([]Type, []optrace.Gap) {
	names, okNames := o.of["ggml_type_name"]
	blocks, okBlocks := o.of["ggml_blck_size"]
	bytes, okBytes := o.of["ggml_type_size"]
	if okNames && okBlocks && okBytes && names.stride == blocks.stride && names.stride == bytes.stride {
		found := o.readTypes(names, blocks.address-names.address, bytes.address-names.address)
		if different := differing(found); len(found) > 0 && different == "" {
			return found, nil
		} else if len(found) > 0 {
			return found, []optrace.Gap{{
				What: "number formats", Why: fmt.Sprintf("the file describes %s differently from GGML; the file's values are used", different),
			}}
		}
	}
	return builtinTypes(), []optrace.Gap{{
		What: "number formats", Why: "the file has no table of them; GGML's list of 2026-08 is assumed",
	}}
}

func (o nameTables) readTypes(t nameTable, block, bytes uint64) []Type {
	var found []Type
	last, size := o.end(nameTable{t.address, max(t.stride, block, bytes)}), uint64(0)
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

// readType reads one number format, and reports whether it is valid. The zero type is a removed
// number.
func (o nameTables) readType(at, block, bytes uint64) (Type, bool) {
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
		t = Type{} // removed: its name is a sentence that says so
	}
	return t, ok
}
