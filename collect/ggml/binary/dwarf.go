package binary

import "debug/dwarf"

// maxDebugBytes is the largest .debug_info that is read, because reading it is slow.
const maxDebugBytes = 1 << 28

// debugLayout determines the offsets from debug information, false if there is none.
func (o *object) debugLayout() (Layout, bool) {
	l := emptyLayout()
	info := o.elf.Section(".debug_info")
	if info == nil || info.Size > maxDebugBytes {
		return l, false
	}
	data, err := o.elf.DWARF()
	if err != nil {
		return l, false
	}
	tensor, graph := false, false
	for r := data.Reader(); !tensor || !graph; {
		e, err := r.Next()
		if err != nil || e == nil {
			break
		}
		switch {
		case e.Tag == dwarf.TagStructType && e.Children && structName(e) == "ggml_tensor" && !tensor:
			l.debugTensor(e, members(r))
			tensor = l.Name >= 0
		case e.Tag == dwarf.TagStructType && e.Children && structName(e) == "ggml_cgraph" && !graph:
			l.debugGraph(members(r))
			graph = l.GraphNodes >= 0
		case e.Tag != dwarf.TagCompileUnit && e.Tag != dwarf.TagNamespace && e.Children:
			r.SkipChildren()
		}
	}
	return l, tensor
}

func structName(e *dwarf.Entry) string {
	name, _ := e.Val(dwarf.AttrName).(string)
	return name
}

// members returns the offsets of a structure's members, whose entries come next.
func members(r *dwarf.Reader) map[string]int {
	found := map[string]int{}
	for {
		e, err := r.Next()
		if err != nil || e == nil || e.Tag == 0 {
			return found
		}
		if at, ok := e.Val(dwarf.AttrDataMemberLoc).(int64); ok && e.Tag == dwarf.TagMember && at >= 0 && at < maxOffset {
			found[structName(e)] = int(at)
		}
		if e.Children {
			r.SkipChildren()
		}
	}
}

func (l *Layout) debugTensor(e *dwarf.Entry, at map[string]int) {
	for name, field := range map[string]*int{
		"type": &l.Type, "ne": &l.NE, "nb": &l.NB, "op": &l.Op, "op_params": &l.Params, "flags": &l.Flags,
		"src": &l.Src, "view_src": &l.View, "data": &l.Data, "name": &l.Name,
	} {
		if offset, ok := at[name]; ok {
			*field = offset
		}
	}
	if size, ok := e.Val(dwarf.AttrByteSize).(int64); ok && size > 0 && size < maxOffset {
		l.Size = int(size)
	}
	next := maxOffset // the member after the sources
	for _, offset := range at {
		if offset > l.Src && offset < next {
			next = offset
		}
	}
	if slots := (next - l.Src) / pointerBytes; l.Src >= 0 && slots <= maxSlots {
		l.Slots = slots
	}
}

func (l *Layout) debugGraph(at map[string]int) {
	if offset, ok := at["n_nodes"]; ok {
		l.GraphCount = offset
	}
	if offset, ok := at["nodes"]; ok {
		l.GraphNodes = offset
	}
}
