//go:build amd64 || arm64

package ggml

import (
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// maxGraphNodes is how many nodes of a graph are looked at; the largest graphs of
// known models have some ten thousand.
const maxGraphNodes = 1 << 16

// How a graph is looked at to tell whether it is new. A look at a node costs 0.2 us where
// the caches are cold. Where a cache grows, its views of K and V change with their
// permutations, four nodes in a row of each layer that attends: one node of three shows
// it for sure. Layers change alike, and so each graph is looked at in one part of several
// in turn: what changes in all layers is seen at once as a rule, and what changes in one
// after as many graphs as there are parts at the latest, but for the last node, which is
// always looked at. Where the number of tokens changes nearly all nodes do.
const (
	lookApart = 3
	lookPart  = 64 // nodes of a part at least: two layers as a rule
	lookParts = 8  // at most, a power of two
)

// mixture is a prime that spreads the bits of a sum (FNV-1a, 64 bits).
const mixture = 0x100000001b3

// The context of a loop over a graph's nodes: words from stackLoop on.
const (
	loopNodes = iota * 8 // address of the array of pointers
	loopSum
	loopWritten
	loopGraph
	loopAt
	loopFirst // the index of the first node that is looked at
)

// What is remembered of a graph: a sum for each part, and which part is next.
const (
	seenNext  = 8 * lookParts
	seenBytes = seenNext + 8
	stackSeen = stackTensor           // in a program that reads no tensor
	stackSame = stackSeen + seenBytes // the key: address and PID
)

// graph watches (graph, plan). Where the graph is not as it was seen last, its nodes
// are written first, one record each. The moment of GraphBegin is after that.
func graph(c *code, o *offsets) asm.Instructions {
	word := func(field int16) int16 { return stackLoop + field }
	c.begin()
	c.keepCookie()
	c.argument(asm.R9, 0)
	c.add(
		asm.LoadMapValue(asm.R1, c.maps.state.FD(), stateBegun),
		asm.Mov.Imm(asm.R2, 1),
		asm.StoreXAdd(asm.R1, asm.R2, asm.Word),
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.RFP, stackCount, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, word(loopWritten), asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, stackWord, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, word(loopGraph), asm.R9, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, stackAt, asm.DWord),
		asm.StoreMem(asm.RFP, word(loopAt), asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, stackSame, asm.R9, asm.DWord),
		asm.Mov.Reg(asm.R1, asm.R8),
		asm.RSh.Imm(asm.R1, 32),
		asm.StoreMem(asm.RFP, stackSame+8, asm.R1, asm.DWord),
	)
	if o.graphCount >= 0 {
		c.readUser(stackWord, 4, asm.R9, int32(o.graphCount))
	}
	if o.graph() {
		c.readUser(int32(word(loopNodes)), 8, asm.R9, int32(o.graphNodes))
		c.add(
			asm.JNE.Imm(asm.R0, 0, "begin"),
			asm.LoadMem(asm.R1, asm.RFP, stackWord, asm.Word),
			asm.JEq.Imm(asm.R1, 0, "begin"),
			asm.JGT.Imm(asm.R1, maxGraphNodes, "begin"),
		)
		c.seenBefore()
		c.at("new")
		c.rememberGraph()
		c.add(asm.LoadMem(asm.R1, asm.RFP, stackWord, asm.Word))
		c.loop("write")
		c.add(
			asm.LoadMem(asm.R1, asm.RFP, stackWord, asm.Word),
			asm.StoreMem(asm.RFP, stackCount, asm.R1, asm.DWord),
		)
	}
	c.at("begin")
	c.time()
	c.reserve(headerSize, "unsent")
	c.add(
		asm.StoreMem(asm.R7, offAddr, asm.R9, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, stackWord, asm.Word),
		asm.StoreMem(asm.R7, offN, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, stackCount, asm.DWord),
		asm.StoreMem(asm.R7, offExtra, asm.R1, asm.DWord),
	)
	c.submit()
	c.add(asm.Ja.Label("exit"))
	c.at("unsent") // nodes whose graph does not come are lost too: they are sent once more
	c.add(asm.LoadMem(asm.R1, asm.RFP, stackCount, asm.DWord), asm.JEq.Imm(asm.R1, 0, "exit"))
	c.seen()
	c.add(asm.FnMapDeleteElem.Call())
	c.finish()
	if o.graph() {
		main := btf.WithFuncMetadata(c.Instructions[0], programType("graph"))
		c.Instructions[0] = main
		c.look(o)
		c.write(o)
	}
	return c.Instructions
}

// seen loads the map of what is remembered of graphs, and the key of this one.
func (c *code) seen() {
	c.add(stack(asm.R2, stackSame)...)
	c.add(asm.LoadMapPtr(asm.R1, c.maps.graphs.FD()))
}

// seenBefore jumps to begin where the graph is as it was, as far as one part tells.
func (c *code) seenBefore() {
	c.seen()
	c.add(
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "new"),
		asm.Mov.Reg(asm.R7, asm.R0),
		asm.LoadMem(asm.R2, asm.R7, seenNext, asm.DWord),
	)
	c.sumOfPart()
	c.parts(asm.R4)
	c.add(
		asm.LoadMem(asm.R1, asm.R7, seenNext, asm.DWord),
		asm.And.Imm(asm.R1, lookParts-1),
		asm.Mov.Reg(asm.R2, asm.R1),
		asm.LSh.Imm(asm.R2, 3),
		asm.Mov.Reg(asm.R3, asm.R7),
		asm.Add.Reg(asm.R3, asm.R2),
		asm.Add.Imm(asm.R1, 1),
		asm.Mod.Reg(asm.R1, asm.R4),
		asm.StoreMem(asm.R7, seenNext, asm.R1, asm.DWord),
		asm.LoadMem(asm.R2, asm.R3, 0, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, stackLoop+loopSum, asm.DWord),
		asm.JEq.Reg(asm.R1, asm.R2, "begin"),
	)
}

// rememberGraph keeps the sums of all parts.
func (c *code) rememberGraph() {
	c.add(asm.Mov.Imm(asm.R1, 0))
	for at := int16(0); at < seenBytes; at += 8 {
		c.add(asm.StoreMem(asm.RFP, stackSeen+at, asm.R1, asm.DWord))
	}
	for part := range int16(lookParts) {
		c.parts(asm.R1)
		c.add(asm.JLE.Imm(asm.R1, int32(part), "summed"), asm.Mov.Imm(asm.R2, int32(part)))
		c.sumOfPart()
		c.add(
			asm.LoadMem(asm.R1, asm.RFP, stackLoop+loopSum, asm.DWord),
			asm.StoreMem(asm.RFP, stackSeen+8*part, asm.R1, asm.DWord),
		)
	}
	c.at("summed")
	c.seen()
	c.add(stack(asm.R3, stackSeen)...)
	c.add(asm.Mov.Imm(asm.R4, mapAny), asm.FnMapUpdateElem.Call())
}

// parts is in how many parts a graph of stackWord nodes is looked at, 1 to lookParts.
func (c *code) parts(dst asm.Register) {
	few, some := c.unique("few"), c.unique("some")
	c.add(
		asm.LoadMem(dst, asm.RFP, stackWord, asm.Word),
		asm.Div.Imm(dst, lookPart),
		asm.JLE.Imm(dst, lookParts, few),
		asm.Mov.Imm(dst, lookParts),
	)
	c.at(few)
	c.add(asm.JGE.Imm(dst, 1, some), asm.Mov.Imm(dst, 1))
	c.at(some)
}

// sumOfPart looks at every so many nodes of the part of index R2 of a graph, and at the last
// node of all: how many outputs are asked for changes the last layer alone.
func (c *code) sumOfPart() {
	c.parts(asm.R3)
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, stackWord, asm.Word),
		asm.StoreMem(asm.RFP, stackLoop+loopSum, asm.R1, asm.DWord),
		asm.Mov.Reg(asm.R4, asm.R1),
		asm.Mul.Reg(asm.R4, asm.R2),
		asm.Add.Reg(asm.R1, asm.R4),
		asm.Div.Reg(asm.R1, asm.R3),
		asm.Div.Reg(asm.R4, asm.R3),
		asm.StoreMem(asm.RFP, stackLoop+loopFirst, asm.R4, asm.DWord),
		asm.Sub.Reg(asm.R1, asm.R4),
		asm.Add.Imm(asm.R1, lookApart-1),
		asm.Div.Imm(asm.R1, lookApart),
	)
	c.loop("look")
	c.add(
		asm.LoadMem(asm.R1, asm.RFP, stackWord, asm.Word),
		asm.Sub.Imm(asm.R1, 1),
		asm.StoreMem(asm.RFP, stackLoop+loopFirst, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R1, 1),
	)
	c.loop("look")
}

// loop calls a function as often as R1 says.
func (c *code) loop(function string) {
	c.add(
		asm.Instruction{OpCode: asm.LoadImmOp(asm.DWord), Dst: asm.R2, Src: asm.PseudoFunc, Constant: -1}.WithReference(function),
	)
	c.add(stack(asm.R3, stackLoop)...)
	c.add(asm.Mov.Imm(asm.R4, 0), asm.FnLoop.Call())
}

// callback begins a function of a loop: R6 its context, R9 its index.
func (c *code) callback(name string) {
	start := len(c.Instructions)
	c.add(asm.Mov.Reg(asm.R6, asm.R2).WithSymbol(name), asm.Mov.Reg(asm.R9, asm.R1))
	c.Instructions[start] = btf.WithFuncMetadata(c.Instructions[start], callbackType(name))
}

// node loads the address of the node at index R9 into R9, 0 where it cannot be read.
func (c *code) node() {
	c.add(
		asm.LSh.Imm(asm.R9, 3),
		asm.LoadMem(asm.R1, asm.R6, loopNodes, asm.DWord),
		asm.Add.Reg(asm.R9, asm.R1),
	)
	c.add(asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.RFP, stackWord, asm.R1, asm.DWord))
	c.readUser(stackWord, 8, asm.R9, 0)
	c.add(asm.LoadMem(asm.R9, asm.RFP, stackWord, asm.DWord))
}

// look adds a node's address and shape to the sum.
func (c *code) look(o *offsets) {
	c.callback("look")
	c.add(
		asm.Mul.Imm(asm.R9, lookApart),
		asm.LoadMem(asm.R1, asm.R6, loopFirst, asm.DWord),
		asm.Add.Reg(asm.R9, asm.R1),
	)
	c.node()
	for i := range int16(4) {
		c.add(asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.RFP, stackNode+8*i, asm.R1, asm.DWord))
	}
	c.readUser(stackNode, 32, asm.R9, int32(o.ne))
	c.add(
		asm.LoadMem(asm.R1, asm.R6, loopSum, asm.DWord),
		asm.LoadImm(asm.R2, mixture, asm.DWord),
		asm.Xor.Reg(asm.R1, asm.R9),
		asm.Mul.Reg(asm.R1, asm.R2),
	)
	for i := range int16(4) {
		c.add(
			asm.LoadMem(asm.R3, asm.RFP, stackNode+8*i, asm.DWord),
			asm.Xor.Reg(asm.R1, asm.R3),
			asm.Mul.Reg(asm.R1, asm.R2),
		)
	}
	c.add(asm.StoreMem(asm.R6, loopSum, asm.R1, asm.DWord))
	c.exit()
}

// write writes a node's record.
func (c *code) write(o *offsets) {
	c.callback("write")
	c.node()
	c.add(
		asm.LoadMem(asm.R1, asm.R6, loopAt, asm.DWord),
		asm.StoreMem(asm.RFP, stackAt, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R1, recordNode),
		asm.StoreMem(asm.RFP, stackCookie, asm.R1, asm.DWord),
		asm.FnGetCurrentPidTgid.Call(),
		asm.Mov.Reg(asm.R8, asm.R0),
	)
	c.reserve(headerSize+int32(o.raw), "next")
	c.add(
		asm.StoreMem(asm.R7, offAddr, asm.R9, asm.DWord),
		asm.LoadMem(asm.R1, asm.R6, loopGraph, asm.DWord),
		asm.StoreMem(asm.R7, offExtra, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.R6, loopWritten, asm.DWord),
		asm.StoreMem(asm.R7, offN, asm.R1, asm.DWord),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(asm.R6, loopWritten, asm.R1, asm.DWord),
	)
	c.copyUser(headerSize, int32(o.raw), asm.R9)
	c.submit()
	c.at("next")
	c.exit()
}

// programType and callbackType are the signatures that the kernel wants to know of
// programs with callbacks.
func programType(name string) *btf.Func {
	return &btf.Func{Name: name, Linkage: btf.GlobalFunc, Type: &btf.FuncProto{
		Return: &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed},
		Params: []btf.FuncParam{{Name: "ctx", Type: &btf.Pointer{Target: (*btf.Void)(nil)}}},
	}}
}

func callbackType(name string) *btf.Func {
	return &btf.Func{Name: name, Linkage: btf.StaticFunc, Type: &btf.FuncProto{
		Return: &btf.Int{Name: "long", Size: 8, Encoding: btf.Signed},
		Params: []btf.FuncParam{
			{Name: "index", Type: &btf.Int{Name: "unsigned int", Size: 4, Encoding: btf.Unsigned}},
			{Name: "ctx", Type: &btf.Pointer{Target: (*btf.Void)(nil)}},
		},
	}}
}
