//go:build amd64 || arm64

package ggml

import (
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// maxGraphNodes is the number of nodes of a graph that are read; the largest graphs of known
// models have some ten thousand.
const maxGraphNodes = 1 << 16

// How a graph is checked for changes. Checking a node costs 0.2 us with cold caches. When a
// cache grows, its views of K and V change with their permutations, four consecutive nodes in
// each layer with attention: every third node shows it for sure. Layers change together, so one
// of several parts of the graph is checked in turn: a change in all layers is usually seen at
// once, a change in one layer after as many graphs as there are parts. The last node is always
// checked. Another number of tokens changes nearly all nodes.
const (
	lookApart = 3
	lookPart  = 64 // least number of nodes of a part: usually two layers
	lookParts = 8  // largest number of parts, a power of two
)

// hashPrime is a prime that spreads the bits of a sum (FNV-1a, 64 bits).
const hashPrime = 0x100000001b3

// The context of a loop over a graph's nodes: words from stackLoop on.
const (
	loopNodes = iota * 8 // address of the array of pointers
	loopSum
	loopWritten
	loopGraph
	loopAt
	loopFirst // the index of the first node to check
)

// The remembered state of a graph: a checksum per part, and the next part to check.
const (
	seenNext  = 8 * lookParts
	seenBytes = seenNext + 8
	stackSeen = stackTensor           // in a program that reads no tensor
	stackSame = stackSeen + seenBytes // the key: address and PID
)

// graph probes (graph, plan). If the graph has changed since it was last seen, its nodes are
// written first, one record each, and the time of GraphBegin is after that.
func graph(c *code, o *offsets) asm.Instructions {
	c.begin()
	c.keepCookie()
	c.argument(asm.R9, 0)
	c.graphContext()
	if o.GraphCount >= 0 {
		c.readUser(stackWord, 4, asm.R9, int32(o.GraphCount))
	}
	if o.graph() {
		c.readUser(stackLoop+loopNodes, 8, asm.R9, int32(o.GraphNodes))
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
	c.add(asm.StoreMem(asm.R7, offAddr, asm.R9, asm.DWord))
	c.count()
	c.put(offExtra, asm.RFP, stackCount)
	c.submit()
	c.add(asm.Ja.Label("exit"))
	c.at("unsent") // without its graph the nodes are useless: have them sent again
	c.add(asm.LoadMem(asm.R1, asm.RFP, stackCount, asm.DWord), asm.JEq.Imm(asm.R1, 0, "exit"))
	c.remove(c.maps.graphs, stackSame)
	c.finish()
	if o.graph() {
		c.Instructions[0] = btf.WithFuncMetadata(c.Instructions[0], programType("graph"))
		c.checkNode(o)
		c.write(o)
	}
	return c.Instructions
}

// graphContext counts a graph that begins, and sets up the context of the loops over its nodes
// and the key of its remembered state.
func (c *code) graphContext() {
	c.add(
		asm.LoadMapValue(asm.R1, c.maps.state.FD(), stateBegun),
		asm.Mov.Imm(asm.R2, 1),
		asm.StoreXAdd(asm.R1, asm.R2, asm.Word),
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.RFP, stackCount, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, stackLoop+loopWritten, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, stackWord, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, stackLoop+loopGraph, asm.R9, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, stackAt, asm.DWord),
		asm.StoreMem(asm.RFP, stackLoop+loopAt, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, stackSame, asm.R9, asm.DWord),
		asm.Mov.Reg(asm.R1, asm.R8),
		asm.RSh.Imm(asm.R1, 32),
		asm.StoreMem(asm.RFP, stackSame+8, asm.R1, asm.DWord),
	)
}

// seenBefore jumps to begin if the graph is unchanged, as far as one part shows.
func (c *code) seenBefore() {
	c.lookup(c.maps.graphs, stackSame, "new")
	c.add(
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

// rememberGraph stores the checksums of all parts.
func (c *code) rememberGraph() {
	c.add(asm.Mov.Imm(asm.R1, 0))
	for at := int16(0); at < seenBytes; at += 8 {
		c.add(asm.StoreMem(asm.RFP, stackSeen+at, asm.R1, asm.DWord))
	}
	for part := range int16(lookParts) {
		c.parts(asm.R1)
		c.add(asm.JLE.Imm(asm.R1, int32(part), "summed"), asm.Mov.Imm(asm.R2, int32(part)))
		c.sumOfPart()
		c.add(asm.LoadMem(asm.R1, asm.RFP, stackLoop+loopSum, asm.DWord), asm.StoreMem(asm.RFP, stackSeen+8*part, asm.R1, asm.DWord))
	}
	c.at("summed")
	c.update(c.maps.graphs, stackSame, stackSeen)
}

// parts loads the number of parts of a graph of stackWord nodes, 1 to lookParts.
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

// sumOfPart computes the checksum of the part with index R2 of a graph, and of the last node:
// the number of requested outputs changes only the last layer.
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

// loop calls a function R1 times.
func (c *code) loop(function string) {
	c.add(
		asm.Instruction{OpCode: asm.LoadImmOp(asm.DWord), Dst: asm.R2, Src: asm.PseudoFunc, Constant: -1}.WithReference(function),
	)
	c.add(stack(asm.R3, stackLoop)...)
	c.add(asm.Mov.Imm(asm.R4, 0), asm.FnLoop.Call())
}

// callback begins the function of a loop: R6 is its context, R9 its index.
func (c *code) callback(name string) {
	start := len(c.Instructions)
	c.add(asm.Mov.Reg(asm.R6, asm.R2).WithSymbol(name), asm.Mov.Reg(asm.R9, asm.R1))
	c.Instructions[start] = btf.WithFuncMetadata(c.Instructions[start], callbackType(name))
}

// node loads the address of the node with index R9 into R9, 0 if it cannot be read.
func (c *code) node() {
	c.add(
		asm.LSh.Imm(asm.R9, 3),
		asm.LoadMem(asm.R1, asm.R6, loopNodes, asm.DWord),
		asm.Add.Reg(asm.R9, asm.R1),
	)
	c.keep(stackWord, 0)
	c.readUser(stackWord, 8, asm.R9, 0)
	c.add(asm.LoadMem(asm.R9, asm.RFP, stackWord, asm.DWord))
}

// checkNode adds a node's address and shape to the checksum.
func (c *code) checkNode(o *offsets) {
	c.callback("look")
	c.add(
		asm.Mul.Imm(asm.R9, lookApart),
		asm.LoadMem(asm.R1, asm.R6, loopFirst, asm.DWord),
		asm.Add.Reg(asm.R9, asm.R1),
	)
	c.node()
	for i := range int16(4) {
		c.keep(stackNode+8*i, 0)
	}
	c.readUser(stackNode, 32, asm.R9, int32(o.NE))
	c.add(
		asm.LoadMem(asm.R1, asm.R6, loopSum, asm.DWord),
		asm.LoadImm(asm.R2, hashPrime, asm.DWord),
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
	c.add(asm.LoadMem(asm.R1, asm.R6, loopAt, asm.DWord), asm.StoreMem(asm.RFP, stackAt, asm.R1, asm.DWord))
	c.keep(stackCookie, recordNode)
	c.add(asm.FnGetCurrentPidTgid.Call(), asm.Mov.Reg(asm.R8, asm.R0))
	c.reserve(headerSize+int32(o.raw), "next")
	c.add(asm.StoreMem(asm.R7, offAddr, asm.R9, asm.DWord))
	c.put(offExtra, asm.R6, loopGraph)
	c.put(offN, asm.R6, loopWritten)
	c.add(asm.Add.Imm(asm.R1, 1), asm.StoreMem(asm.R6, loopWritten, asm.R1, asm.DWord))
	c.copyUser(headerSize, int32(o.raw), asm.R9)
	c.submit()
	c.at("next")
	c.exit()
}

// programType returns the signature of a program with callbacks, which the kernel requires.
func programType(name string) *btf.Func {
	return signature(name, btf.GlobalFunc, &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed})
}

// callbackType returns the signature of the callback of a loop.
func callbackType(name string) *btf.Func {
	return signature(name, btf.StaticFunc, &btf.Int{Name: "long", Size: 8, Encoding: btf.Signed},
		btf.FuncParam{Name: "index", Type: &btf.Int{Name: "unsigned int", Size: 4, Encoding: btf.Unsigned}})
}

// signature returns a function type with some parameters and, last, a context.
func signature(name string, linkage btf.FuncLinkage, result *btf.Int, params ...btf.FuncParam) *btf.Func {
	context := btf.FuncParam{Name: "ctx", Type: &btf.Pointer{Target: (*btf.Void)(nil)}}
	return &btf.Func{Name: name, Linkage: linkage, Type: &btf.FuncProto{Return: result, Params: append(params, context)}}
}
