package gguf

import (
	"encoding/binary"
	"math"
	"strings"
)

// random is a random number generator, SplitMix64 (Steele, Lea & Flood, OOPSLA 2014).
type random uint64

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Standard deviations of uniform integers: -128 to 127, and -8 to 7.
const (
	spread8 = 73.9
	spread4 = 4.61
)

// weights writes the data of a tensor. The weights of a matrix have a standard deviation of one
// over the square root of its inputs, so that activations keep their size through the layers;
// norms are 1, embeddings have the size of a norm's output. The logits of special tokens are 0,
// never the highest, so that no text ends by itself.
func (e *encoder) weights(t Tensor, r random) {
	if strings.HasSuffix(t.Name, "norm.weight") {
		for range t.elements() {
			e.u32(math.Float32bits(1))
		}
		return
	}
	size := 1 / math.Sqrt(float64(t.Dims[0]))
	if t.Name == "token_embd.weight" {
		size = 1
	}
	never := int64(0)
	if t.Name == "output.weight" {
		never = int64(specials * t.Dims[0])
	}
	elements, bytes := t.Type.block()
	for at := int64(0); at < t.elements(); at += int64(elements) {
		if at < never {
			e.buf = append(e.buf, make([]byte, bytes)...)
		} else {
			e.buf = t.Type.appendBlock(e.buf, &r, size)
		}
		if len(e.buf) > 1<<16-bytes {
			e.bytes(e.buf)
			e.buf = e.buf[:0]
		}
	}
	e.bytes(e.buf)
	e.buf = e.buf[:0]
}

// appendBlock appends one block of a type with values of standard deviation size. The sign of a
// block's scale is random, so that asymmetric integers have a mean of 0.
func (t Type) appendBlock(b []byte, r *random, size float64) []byte {
	if t == F32 {
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(r.uniform(size))))
	}
	spread, words := spread8, 4
	if t == Q4_0 {
		spread, words = spread4, 2
	}
	scale := half(size / spread)
	if r.next()&1 == 1 {
		scale |= 1 << 15
	}
	b = binary.LittleEndian.AppendUint16(b, scale)
	for range words {
		b = binary.LittleEndian.AppendUint64(b, r.next())
	}
	return b
}

// uniform returns a number with mean 0 and standard deviation size.
func (r *random) uniform(size float64) float64 {
	return (float64(r.next()>>11)/(1<<53) - 0.5) * math.Sqrt(12) * size
}

// half converts a number to IEEE 754 binary16 by truncation, for absolute values between 2^-14
// and 65504; smaller ones become 0.
func half(v float64) uint16 {
	bits := math.Float32bits(float32(v))
	sign := uint16(bits >> 16 & 0x8000)
	exponent := int(bits>>23&0xff) - 127 + 15
	if exponent <= 0 {
		return sign
	}
	return sign | uint16(exponent)<<10 | uint16(bits>>13&0x3ff)
}
