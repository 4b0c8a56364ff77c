package gguf

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Types of values in the header (gguf.h, gguf_type).
const (
	valueUint32  = 4
	valueInt32   = 5
	valueFloat32 = 6
	valueBool    = 7
	valueString  = 8
	valueArray   = 9
)

// Kinds of tokens (llama.h, llama_token_type).
const (
	tokenNormal  = 1
	tokenUnknown = 2
	tokenControl = 3
	tokenByte    = 6
)

const (
	alignment = 32 // of tensors in the file, GGUF's default
	version   = 3
	specials  = 3 // <unk>, <s>, </s>
	// End is the token that ends a text.
	End = 2
)

// Write writes the model. The same shape always gives the same bytes.
func Write(w io.Writer, s Shape) error {
	b := bufio.NewWriterSize(w, 1<<20)
	e := &encoder{w: b}
	tensors := s.Tensors()
	e.raw("GGUF")
	e.u32(version)
	e.u64(uint64(len(tensors)))
	e.header(s)
	at := int64(0)
	for _, t := range tensors {
		e.str(t.Name)
		e.u32(uint32(len(t.Dims)))
		for _, d := range t.Dims {
			e.u64(uint64(d))
		}
		e.u32(uint32(t.Type))
		e.u64(uint64(at))
		at = aligned(at + t.Bytes())
	}
	e.pad()
	for i, t := range tensors {
		e.weights(t, random(uint64(i)+1))
		e.pad()
	}
	if e.err != nil {
		return fmt.Errorf("gguf: %w", e.err)
	}
	return b.Flush()
}

func aligned(n int64) int64 { return (n + alignment - 1) / alignment * alignment }

// encoder writes little-endian values and keeps the first error.
type encoder struct {
	w   io.Writer
	n   int64
	err error
	buf []byte
}

func (e *encoder) bytes(b []byte) {
	if e.err == nil {
		var n int
		n, e.err = e.w.Write(b)
		e.n += int64(n)
	}
}

func (e *encoder) raw(s string) { e.bytes([]byte(s)) }
func (e *encoder) u32(v uint32) { e.bytes(binary.LittleEndian.AppendUint32(nil, v)) }
func (e *encoder) u64(v uint64) { e.bytes(binary.LittleEndian.AppendUint64(nil, v)) }
func (e *encoder) str(s string) { e.u64(uint64(len(s))); e.raw(s) }
func (e *encoder) pad()         { e.bytes(make([]byte, aligned(e.n)-e.n)) }

// header writes the number of metadata pairs and the pairs that llama.cpp's loader needs.
func (e *encoder) header(s Shape) {
	type pair struct {
		key   string
		value any
	}
	pairs := []pair{
		{"general.architecture", "llama"},
		{"general.name", "random " + s.Name},
		{"general.quantization_version", uint32(2)},
		{"llama.context_length", uint32(s.Context)},
		{"llama.embedding_length", uint32(s.Width)},
		{"llama.block_count", uint32(s.Layers)},
		{"llama.feed_forward_length", uint32(s.Hidden)},
		{"llama.rope.dimension_count", uint32(s.Width / s.Heads)},
		{"llama.attention.head_count", uint32(s.Heads)},
		{"llama.attention.head_count_kv", uint32(s.KVHeads)},
		{"llama.attention.layer_norm_rms_epsilon", float32(1e-5)},
		{"llama.vocab_size", uint32(s.Vocab)},
	}
	if s.Experts > 0 {
		pairs = append(pairs, pair{"llama.expert_count", uint32(s.Experts)}, pair{"llama.expert_used_count", uint32(s.Used)})
	}
	words, scores, kinds := vocabulary(s.Vocab)
	pairs = append(pairs, []pair{
		{"tokenizer.ggml.model", "llama"},
		{"tokenizer.ggml.tokens", words},
		{"tokenizer.ggml.scores", scores},
		{"tokenizer.ggml.token_type", kinds},
		{"tokenizer.ggml.bos_token_id", uint32(1)},
		{"tokenizer.ggml.eos_token_id", uint32(End)},
		{"tokenizer.ggml.unknown_token_id", uint32(0)},
		{"tokenizer.ggml.add_bos_token", true},
		{"tokenizer.ggml.add_eos_token", false},
	}...)
	e.u64(uint64(len(pairs)))
	for _, p := range pairs {
		e.str(p.key)
		e.value(p.value)
	}
}

func (e *encoder) value(v any) {
	switch v := v.(type) {
	case uint32:
		e.u32(valueUint32)
		e.u32(v)
	case float32:
		e.u32(valueFloat32)
		e.u32(math.Float32bits(v))
	case bool:
		e.u32(valueBool)
		e.bytes([]byte{map[bool]byte{true: 1}[v]})
	case string:
		e.u32(valueString)
		e.str(v)
	case []string:
		e.array(valueString, len(v))
		for _, s := range v {
			e.str(s)
		}
	case []float32:
		e.array(valueFloat32, len(v))
		for _, f := range v {
			e.u32(math.Float32bits(f))
		}
	case []int32:
		e.array(valueInt32, len(v))
		for _, n := range v {
			e.u32(uint32(n))
		}
	}
}

func (e *encoder) array(kind uint32, n int) {
	e.u32(valueArray)
	e.u32(kind)
	e.u64(uint64(n))
}

// vocabulary returns the tokens of a SentencePiece tokenizer: special tokens, one per byte, and
// words like "▁w17".
func vocabulary(n int) (words []string, scores []float32, kinds []int32) {
	add := func(word string, score float32, kind int32) {
		words, scores, kinds = append(words, word), append(scores, score), append(kinds, kind)
	}
	add("<unk>", 0, tokenUnknown)
	add("<s>", 0, tokenControl)
	add("</s>", 0, tokenControl)
	for b := range 256 {
		add(fmt.Sprintf("<0x%02X>", b), 0, tokenByte)
	}
	for i := len(words); i < n; i++ {
		add(fmt.Sprintf("▁w%d", i), -float32(i), tokenNormal)
	}
	return words, scores, kinds
}
