// Package document writes the JSON documents of rooftop, from values with json tags and from objects.
//
// Its encoder differs from encoding/json so that a document is always valid and has every key. Absent values are
// null: an absent stat.Opt, a number that is not finite, a nil pointer or interface, and a text or number that
// is zero and tagged omitzero. A nil slice is an empty array. A time.Duration under a key that ends in _s is in
// seconds. A time.Time is UTC in RFC 3339.
package document

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
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

// Object is a JSON object with its keys in order.
type Object []Member

// set adds a member, or replaces the value of the key.
func (o *Object) set(key string, value any) {
	if i := slices.IndexFunc(*o, func(m Member) bool { return m.Key == key }); i >= 0 {
		(*o)[i].Value = value
		return
	}
	*o = append(*o, Member{key, value})
}

// Documenter is implemented by types that are encoded as another value.
type Documenter interface{ Document() any }

// Write writes v as one JSON document, indented by two spaces, with a trailing newline. The last members of the
// document may be given apart: they have thousands of numbers, and each is written in one line.
func Write(w io.Writer, v any, last ...Member) error {
	text, err := encode(v)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return err
	}
	for _, m := range last {
		text, err := encode(m.Value)
		if err != nil {
			return err
		}
		b.Truncate(b.Len() - len("\n}"))
		fmt.Fprintf(&b, ",\n  %q: %s\n}", m.Key, text)
	}
	b.WriteByte('\n')
	_, err = w.Write(plainSpaces(b.Bytes()))
	return err
}

// WriteLine writes v as one line.
func WriteLine(w io.Writer, v any) error {
	text, err := encode(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(plainSpaces(text), '\n'))
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

// encode returns v as JSON without spaces.
func encode(v any) ([]byte, error) {
	e := &encoder{}
	e.leaf = json.NewEncoder(&e.b)
	e.leaf.SetEscapeHTML(false)
	e.value(reflect.ValueOf(v))
	return e.b.Bytes(), e.err
}

// encoder appends encoded values. It keeps the first error.
type encoder struct {
	b    bytes.Buffer
	leaf *json.Encoder // writes to b without HTML escapes
	err  error
}

// plain encodes a value with encoding/json.
func (e *encoder) plain(v any) {
	if err := e.leaf.Encode(v); err == nil {
		e.b.Truncate(e.b.Len() - 1) // the newline after each value
	} else if e.err == nil {
		e.err = err
	}
}

func (e *encoder) value(v reflect.Value) {
	if !v.IsValid() || (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && v.IsNil() {
		e.b.WriteString("null")
		return
	}
	switch x := v.Interface().(type) {
	case Object:
		e.object(x)
		return
	case Documenter:
		e.value(reflect.ValueOf(x.Document()))
		return
	case time.Time:
		e.plain(x.UTC().Format(time.RFC3339Nano))
		return
	case json.Marshaler:
		e.plain(x)
		return
	}
	switch v.Kind() {
	case reflect.Float64:
		e.plain(stat.Finite(v.Float()))
	case reflect.Pointer, reflect.Interface:
		e.value(v.Elem())
	case reflect.Slice, reflect.Array:
		e.list("[]", v.Len(), func(i int) { e.value(v.Index(i)) })
	case reflect.Map:
		var o Object
		for _, key := range v.MapKeys() {
			o = append(o, Member{key.String(), v.MapIndex(key).Interface()})
		}
		slices.SortFunc(o, func(a, b Member) int { return strings.Compare(a.Key, b.Key) })
		e.object(o)
	case reflect.Struct:
		e.object(members(v))
	default:
		e.plain(v.Interface())
	}
}

// list encodes n items between brackets.
func (e *encoder) list(brackets string, n int, item func(i int)) {
	e.b.WriteByte(brackets[0])
	for i := range n {
		if i > 0 {
			e.b.WriteByte(',')
		}
		item(i)
	}
	e.b.WriteByte(brackets[1])
}

func (e *encoder) object(o Object) {
	e.list("{}", len(o), func(i int) {
		e.plain(o[i].Key)
		e.b.WriteByte(':')
		e.value(reflect.ValueOf(inSeconds(o[i].Key, o[i].Value)))
	})
}

// members returns the members of a struct, with those of embedded structs in their place. A member replaces one of
// the same name that an embedded struct has.
func members(v reflect.Value) Object {
	var o Object
	for i := range v.NumField() {
		f, x := v.Type().Field(i), v.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		single := x.Kind() != reflect.Struct && x.Kind() != reflect.Array
		switch {
		case f.Anonymous && name == "":
			if x = reflect.Indirect(x); x.IsValid() {
				for _, m := range members(x) {
					o.set(m.Key, m.Value)
				}
			}
		case !f.IsExported() || name == "-":
		case !x.IsZero() || option == "":
			o.set(cmp.Or(name, f.Name), x.Interface())
		case option == "omitzero" && single:
			o.set(name, nil)
		}
	}
	return o
}

// inSeconds returns durations in seconds if the key says so, and any other value as it is.
func inSeconds(key string, v any) any {
	if !strings.HasSuffix(key, "_s") {
		return v
	}
	switch v := v.(type) {
	case time.Duration:
		return v.Seconds()
	case []time.Duration:
		seconds := make([]float64, len(v))
		for i := range v {
			seconds[i] = v[i].Seconds()
		}
		return seconds
	}
	return v
}

// orNull returns v, nil for its zero value.
func orNull[T comparable](v T) any {
	if v == *new(T) {
		return nil
	}
	return v
}
