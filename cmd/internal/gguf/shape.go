// Package gguf writes models with random weights in the GGUF format, version 3, which real GGML
// runtimes load, so that tests of operator tracing know every layer, dimension and type. The
// same shape gives the same bytes.
//
// Format: docs/gguf.md of the ggml repository; block formats: ggml-common.h (block_q8_0,
// block_q4_0); names of tensors and keys: llama-arch.cpp of llama.cpp.
package gguf

import (
	"fmt"
)

// Type is a number format of a tensor, as GGML numbers it (ggml.h, ggml_type).
type Type uint32

// Types that can be written.
const (
	F32  Type = 0
	Q4_0 Type = 2
	Q8_0 Type = 8
)

// formats are GGML's names for types, with the number of elements and bytes of a block.
var formats = map[Type]struct {
	name            string
	elements, bytes int
}{F32: {"f32", 1, 4}, Q4_0: {"q4_0", 32, 18}, Q8_0: {"q8_0", 32, 34}}

// block returns the number of elements and bytes of a block of a type.
func (t Type) block() (elements, bytes int) { return formats[t].elements, formats[t].bytes }

// String returns GGML's name for a type.
func (t Type) String() string { return formats[t].name }

// Shape is a model of llama.cpp's architecture "llama". Dimensions are in elements.
type Shape struct {
	Name    string
	Layers  int
	Width   int // size of the embedding
	Heads   int
	KVHeads int
	Hidden  int // size of the feed-forward part, or of one expert
	Vocab   int // at least 259: the special tokens and one token per byte
	Context int // context length in the metadata, in tokens
	Weights Type
	// Experts is the number of experts per layer, Used how many of them a token uses; 0 is a
	// dense model.
	Experts, Used int
}

// Models that the tests of operator tracing use, smallest first: two that take less
// than a millisecond for a token, one of 150 million parameters, and one of the
// published shape of TinyLlama 1.1B.
var (
	Tiny = Shape{Name: "tiny", Layers: 4, Width: 256, Heads: 4, KVHeads: 2, Hidden: 640, Vocab: 512, Context: 4096, Weights: Q8_0}
	MoE  = Shape{Name: "moe", Layers: 4, Width: 256, Heads: 4, KVHeads: 2, Hidden: 256, Vocab: 512, Context: 4096, Weights: Q8_0, Experts: 8, Used: 2}
	Mid  = Shape{Name: "mid", Layers: 12, Width: 1024, Heads: 16, KVHeads: 8, Hidden: 2816, Vocab: 5120, Context: 4096, Weights: Q8_0}
	Big  = Shape{Name: "big", Layers: 22, Width: 2048, Heads: 32, KVHeads: 4, Hidden: 5632, Vocab: 32000, Context: 4096, Weights: Q4_0}
)

// Models returns all models, smallest first.
func Models() []Shape { return []Shape{Tiny, MoE, Mid, Big} }

// KVWidth returns the width of keys and values of a token.
func (s Shape) KVWidth() int { return s.Width / s.Heads * s.KVHeads }

// Parameters returns the number of weights.
func (s Shape) Parameters() int64 {
	sum := int64(0)
	for _, t := range s.Tensors() {
		sum += t.elements()
	}
	return sum
}

// Tensor is one tensor of a file. The first dimension varies fastest.
type Tensor struct {
	Name string
	Dims []int
	Type Type
}

func (t Tensor) elements() int64 {
	n := int64(1)
	for _, d := range t.Dims {
		n *= int64(d)
	}
	return n
}

// Bytes returns the size of a tensor's data.
func (t Tensor) Bytes() int64 {
	elements, bytes := t.Type.block()
	return t.elements() / int64(elements) * int64(bytes)
}

// Tensors returns the tensors of the model in the order of its file.
func (s Shape) Tensors() []Tensor {
	list := []Tensor{{"token_embd.weight", []int{s.Width, s.Vocab}, s.Weights}}
	for l := range s.Layers {
		add := func(name string, kind Type, dims ...int) {
			list = append(list, Tensor{fmt.Sprintf("blk.%d.%s.weight", l, name), dims, kind})
		}
		add("attn_norm", F32, s.Width)
		add("attn_q", s.Weights, s.Width, s.Width)
		add("attn_k", s.Weights, s.Width, s.KVWidth())
		add("attn_v", s.Weights, s.Width, s.KVWidth())
		add("attn_output", s.Weights, s.Width, s.Width)
		add("ffn_norm", F32, s.Width)
		if s.Experts == 0 {
			add("ffn_gate", s.Weights, s.Width, s.Hidden)
			add("ffn_up", s.Weights, s.Width, s.Hidden)
			add("ffn_down", s.Weights, s.Hidden, s.Width)
			continue
		}
		add("ffn_gate_inp", F32, s.Width, s.Experts)
		add("ffn_gate_exps", s.Weights, s.Width, s.Hidden, s.Experts)
		add("ffn_up_exps", s.Weights, s.Width, s.Hidden, s.Experts)
		add("ffn_down_exps", s.Weights, s.Hidden, s.Width, s.Experts)
	}
	return append(list, Tensor{"output_norm.weight", []int{s.Width}, F32}, Tensor{"output.weight", []int{s.Width, s.Vocab}, s.Weights})
}
