package gguf

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// file is a GGUF file as read back.
type file struct {
	pairs   map[string]any
	tensors []Tensor
	offsets []uint64
	data    []byte
}

// reader consumes values in the order of the format's description.
type reader struct {
	t *testing.T
	b []byte
	n int
}

func (r *reader) take(n int) []byte {
	r.t.Helper()
	if n < 0 || n > len(r.b)-r.n {
		r.t.Fatalf("%d bytes wanted at %d of %d", n, r.n, len(r.b))
	}
	r.n += n
	return r.b[r.n-n : r.n]
}

func (r *reader) u32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *reader) u64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }
func (r *reader) str() string { return string(r.take(int(r.u64()))) }

func (r *reader) value(kind uint32) any {
	switch kind {
	case valueUint32:
		return int(r.u32())
	case valueInt32:
		return int(int32(r.u32()))
	case valueFloat32:
		return math.Float32frombits(r.u32())
	case valueBool:
		return r.take(1)[0] == 1
	case valueString:
		return r.str()
	case valueArray:
		kind, list := r.u32(), []any{}
		for n := r.u64(); n > 0; n-- {
			list = append(list, r.value(kind))
		}
		return list
	}
	r.t.Fatalf("a value of type %d", kind)
	return nil
}

func readBack(t *testing.T, b []byte) file {
	t.Helper()
	r := &reader{t: t, b: b}
	if magic, v := string(r.take(4)), r.u32(); magic != "GGUF" || v != 3 {
		t.Fatalf("%q of version %d", magic, v)
	}
	tensors, pairs := r.u64(), r.u64()
	f := file{pairs: map[string]any{}}
	for range pairs {
		key := r.str()
		f.pairs[key] = r.value(r.u32())
	}
	for range tensors {
		n := Tensor{Name: r.str()}
		for dims := r.u32(); dims > 0; dims-- {
			n.Dims = append(n.Dims, int(r.u64()))
		}
		n.Type = Type(r.u32())
		f.tensors, f.offsets = append(f.tensors, n), append(f.offsets, r.u64())
	}
	f.data = b[aligned(int64(r.n)):]
	return f
}

func written(t *testing.T, s Shape) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWhatIsWrittenReadsBack(t *testing.T) {
	for _, s := range []Shape{Tiny, MoE, {Name: "floats", Layers: 1, Width: 64, Heads: 2, KVHeads: 1, Hidden: 96, Vocab: 300, Context: 64, Weights: F32}} {
		t.Run(s.Name, func(t *testing.T) {
			b := written(t, s)
			f := readBack(t, b)
			if diff := cmp.Diff(s.Tensors(), f.tensors); diff != "" {
				t.Errorf("tensors (-want +got):\n%s", diff)
			}
			end := int64(0)
			for i, n := range f.tensors {
				if f.offsets[i] != uint64(end) || f.offsets[i]%alignment != 0 {
					t.Errorf("%s is at %d, want %d", n.Name, f.offsets[i], end)
				}
				end = aligned(end + n.Bytes())
			}
			if int64(len(f.data)) != end {
				t.Errorf("%d bytes of data, want %d", len(f.data), end)
			}
			for key, want := range map[string]any{
				"general.architecture": "llama", "llama.block_count": s.Layers, "llama.embedding_length": s.Width,
				"llama.attention.head_count": s.Heads, "llama.attention.head_count_kv": s.KVHeads, "llama.feed_forward_length": s.Hidden,
			} {
				if f.pairs[key] != want {
					t.Errorf("%s is %v, want %v", key, f.pairs[key], want)
				}
			}
			if n, there := f.pairs["llama.expert_count"]; there != (s.Experts > 0) || there && n != s.Experts {
				t.Errorf("llama.expert_count is %v, want %d", n, s.Experts)
			}
			for _, key := range []string{"tokens", "scores", "token_type"} {
				if n := len(f.pairs["tokenizer.ggml."+key].([]any)); n != s.Vocab {
					t.Errorf("%d of tokenizer.ggml.%s, want %d", n, key, s.Vocab)
				}
			}
			if !bytes.Equal(b, written(t, s)) {
				t.Error("written twice it is not the same")
			}
		})
	}
}

// The bytes must not change: recordings and figures of one machine are compared with those of
// another.
func TestTheBytesStay(t *testing.T) {
	sum := sha256.Sum256(written(t, Tiny))
	if got, want := hex.EncodeToString(sum[:8]), "b7b2d6669a865a18"; got != want {
		t.Errorf("tiny has the sum %s, want %s", got, want)
	}
}

// The values of a block have the intended mean and standard deviation.
func TestBlocksHaveTheirSize(t *testing.T) {
	for _, kind := range []Type{F32, Q8_0, Q4_0} {
		t.Run(kind.String(), func(t *testing.T) {
			const size = 0.05
			elements, bytesOf := kind.block()
			r, b := random(7), []byte(nil)
			for range 32000 / elements {
				b = kind.appendBlock(b, &r, size)
			}
			sum, squares, n := 0.0, 0.0, 0
			for ; len(b) > 0; b = b[bytesOf:] {
				for _, v := range values(kind, b[:bytesOf]) {
					sum, squares, n = sum+v, squares+v*v, n+1
				}
			}
			mean, spread := sum/float64(n), math.Sqrt(squares/float64(n))
			if n != 32000 || math.Abs(mean) > size/50 || math.Abs(spread-size) > size/50 {
				t.Errorf("%d values of mean %.5f and spread %.5f, want 0 and %v", n, mean, spread, size)
			}
		})
	}
}

// values returns the values of a block, by ggml-quants.c (dequantize_row_*).
func values(kind Type, b []byte) []float64 {
	float := func(b []byte) float64 { // binary16, normal numbers
		bits := binary.LittleEndian.Uint16(b)
		v := math.Ldexp(1+float64(bits&0x3ff)/1024, int(bits>>10&0x1f)-15)
		if bits>>15 == 1 {
			return -v
		}
		return v
	}
	var list []float64
	switch kind {
	case F32:
		return []float64{float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))}
	case Q8_0:
		for _, q := range b[2:] {
			list = append(list, float(b)*float64(int8(q)))
		}
	case Q4_0:
		for _, q := range b[2:] {
			list = append(list, float(b)*(float64(q&15)-8), float(b)*(float64(q>>4)-8))
		}
	}
	return list
}

func TestShapesThatCannotBe(t *testing.T) {
	for want, change := range map[string]func(*Shape){
		"has a dimension below 1":    func(s *Shape) { s.Layers = 0 },
		"heads do not divide":        func(s *Shape) { s.Heads = 3 },
		"it takes 259 at least":      func(s *Shape) { s.Vocab = 100 },
		"uses 3 of 2 experts":        func(s *Shape) { s.Experts, s.Used = 2, 3 },
		"not made of whole blocks":   func(s *Shape) { s.Hidden = 100 },
		"whole blocks of type 12345": func(s *Shape) { s.Weights = 12345 },
	} {
		s := Tiny
		change(&s)
		if err := Write(&bytes.Buffer{}, s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// full is a writer with room for some bytes.
type full int

func (f *full) Write(b []byte) (int, error) {
	if *f -= full(len(b)); *f < 0 {
		return 0, errFull
	}
	return len(b), nil
}

var errFull = errors.New("no space left")

func TestAFullDiskIsSaid(t *testing.T) {
	for _, room := range []full{0, 1 << 20, 3 << 20} {
		if err := Write(&room, Tiny); !errors.Is(err, errFull) {
			t.Errorf("%v, want it to say that there is no space", err)
		}
	}
}

func ExampleShape_Parameters() {
	fmt.Printf("%.1f billion\n", float64(Big.Parameters())/1e9)
	// Output: 1.1 billion
}
