// Package document encodes the JSON documents of rooftop from tagged structs, with one encoder for all.
//
// A document has every key, in the order of its struct. Absent values are null: an absent stat.Opt, a number
// that is not finite, a nil pointer or interface. A nil slice is an empty array. A time.Duration under a key
// that ends in _s is in seconds; a time.Time is UTC in RFC 3339.
//
// In addition to json:"name,omitempty" the encoder supports two tags: absent:"x" names the value that is
// encoded as null (absent:"" for a text, absent:"0" for a number or a duration); layout:"line" encodes a
// member in one line instead of one for each of thousands of numbers.
package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Member is one key of an object.
type Member struct {
	Key   string
	Value any
}

// Object is a JSON object with variable keys, such as names of quantities, in order. An object with fixed
// keys is a struct.
type Object []Member

// Documenter is implemented by types that are encoded as another value.
type Documenter interface{ Document() any }

// Write writes v as one JSON document, indented by two spaces, with a trailing newline.
func Write(w io.Writer, v any) error {
	var b bytes.Buffer
	if _, object := v.(Object); !object && reflect.Indirect(reflect.ValueOf(v)).Kind() != reflect.Struct {
		e := newEncoder()
		if err := e.encode(v); err != nil {
			return err
		}
		if err := json.Indent(&b, e.b.Bytes(), "", "  "); err != nil {
			return err
		}
		b.WriteByte('\n')
		_, err := w.Write(plainSpaces(b.Bytes()))
		return err
	}
	members, err := membersOf(v)
	if err != nil {
		return err
	}
	for i, m := range members {
		b.WriteString(map[bool]string{true: "{\n  ", false: ",\n  "}[i == 0])
		fmt.Fprintf(&b, "%q: ", m.name)
		if m.line {
			b.Write(m.raw)
		} else if err := json.Indent(&b, m.raw, "  ", "  "); err != nil {
			return err
		}
	}
	b.WriteString("\n}\n")
	_, err = w.Write(plainSpaces(b.Bytes()))
	return err
}

// WriteLine writes v as one line.
func WriteLine(w io.Writer, v any) error {
	e := newEncoder()
	if err := e.encode(v); err != nil {
		return err
	}
	_, err := w.Write(append(plainSpaces(e.b.Bytes()), '\n'))
	return err
}

// plainSpaces replaces the no-break spaces between figures and units by spaces, because scripts search for
// "12 ms", and escapes characters that would do something to a terminal.
func plainSpaces(document []byte) []byte {
	document = bytes.ReplaceAll(document, []byte(figure.NBSP), []byte(" "))
	if bytes.IndexFunc(document, controls) < 0 {
		return document
	}
	var b bytes.Buffer
	for _, r := range string(document) {
		if controls(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}

// controls reports whether a terminal reacts to a character that encoding/json leaves as it is.
func controls(r rune) bool {
	return r >= 0x7f && r <= 0x9f || unicode.In(r, unicode.Bidi_Control)
}

// rawMember is a member of the outermost object.
type rawMember struct {
	name string
	raw  []byte
	line bool
}

func membersOf(v any) ([]rawMember, error) {
	var list []rawMember
	e := newEncoder()
	add := func(name string, line bool, write func()) {
		from := e.b.Len()
		write()
		list = append(list, rawMember{name: name, line: line, raw: slices.Clone(e.b.Bytes()[from:])})
	}
	switch v := v.(type) {
	case Object:
		for _, m := range v {
			add(m.Key, false, func() { e.any(m.Value) })
		}
	default:
		e.fields(reflect.Indirect(reflect.ValueOf(v)), func(f *field, v reflect.Value) { add(f.name, f.line, func() { e.field(f, v) }) })
	}
	return list, e.err
}

// encoder appends encoded values. It keeps the first error.
type encoder struct {
	b     bytes.Buffer
	leaf  *json.Encoder // writes to b without HTML escapes
	types map[reflect.Type][]field
	err   error
}

func newEncoder() *encoder {
	e := &encoder{types: map[reflect.Type][]field{}}
	e.leaf = json.NewEncoder(&e.b)
	e.leaf.SetEscapeHTML(false)
	return e
}

func (e *encoder) encode(v any) error {
	e.any(v)
	return e.err
}

// plain encodes a value with encoding/json.
func (e *encoder) plain(v any) {
	if err := e.leaf.Encode(v); err != nil {
		if e.err == nil {
			e.err = err
		}
		return
	}
	e.b.Truncate(e.b.Len() - 1) // the newline after each value
}

func (e *encoder) float(v float64, ok bool) {
	if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
		e.b.WriteString("null")
		return
	}
	e.plain(v)
}

func (e *encoder) any(v any) { e.value(reflect.ValueOf(v)) }

func (e *encoder) value(v reflect.Value) {
	if !v.IsValid() {
		e.b.WriteString("null")
		return
	}
	if k := v.Kind(); (k == reflect.Pointer || k == reflect.Interface) && v.IsNil() {
		e.b.WriteString("null")
		return
	}
	switch x := v.Interface().(type) {
	case stat.Opt:
		e.float(x.V, x.OK)
		return
	case Object:
		e.object(len(x), func(i int) { e.key(i, x[i].Key); e.any(x[i].Value) })
		return
	case Documenter:
		e.any(x.Document())
		return
	case time.Time:
		e.plain(x.UTC().Format(time.RFC3339Nano))
		return
	case json.Marshaler:
		e.plain(x)
		return
	}
	switch v.Kind() {
	case reflect.Float64, reflect.Float32:
		e.float(v.Float(), true)
	case reflect.Pointer, reflect.Interface:
		e.value(v.Elem())
	case reflect.Slice, reflect.Array:
		e.b.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				e.b.WriteByte(',')
			}
			e.value(v.Index(i))
		}
		e.b.WriteByte(']')
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		e.object(len(keys), func(i int) { e.key(i, keys[i].String()); e.value(v.MapIndex(keys[i])) })
	case reflect.Struct:
		e.structure(v)
	default:
		e.plain(v.Interface())
	}
}

func (e *encoder) key(i int, name string) {
	if i > 0 {
		e.b.WriteByte(',')
	}
	e.plain(name)
	e.b.WriteByte(':')
}

func (e *encoder) object(n int, member func(i int)) {
	e.b.WriteByte('{')
	for i := range n {
		member(i)
	}
	e.b.WriteByte('}')
}

func (e *encoder) structure(v reflect.Value) {
	e.b.WriteByte('{')
	n := 0
	e.fields(v, func(f *field, v reflect.Value) { e.key(n, f.name); n++; e.field(f, v) })
	e.b.WriteByte('}')
}
