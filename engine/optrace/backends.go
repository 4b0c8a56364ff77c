package optrace

// handSplit hands over a part of a graph that goes to a backend.
func (a *Assembler) handSplit(th *thread, e *Event) {
	if a.backends != nil {
		a.backends.Split(&Split{Call: th.callIndex(), Backend: e.Ref, Nodes: int(max(e.N, 0)), At: e.At, TID: e.TID})
	}
}

func (a *Assembler) handCopy(th *thread, e *Event) {
	if a.backends != nil {
		a.backends.Copy(&Copy{Call: th.callIndex(), Kind: CopyKind(e.Ref), Bytes: max(e.N, 0), At: e.At, TID: e.TID})
	}
}

// callIndex is the call that a thread is in, -1 none.
func (th *thread) callIndex() int {
	if th.call == nil {
		return -1
	}
	return th.call.Index
}
