package document

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/rooftop-dev/rooftop/engine/capture"
)

// binding binds a member of an object for encoding and decoding: value is a pointer, or implements
// Documenter and json.Unmarshaler.
type binding struct {
	key   string
	value any
}

// bound is an object that is encoded from, and decoded into, the values that its members point to.
// Members that are missing from a document keep their values.
type bound []binding

// Document implements [Documenter].
func (b bound) Document() any {
	var o Object
	for _, m := range b {
		if text, optional := m.value.(*omitted); !optional || *text != "" {
			o = append(o, Member{m.key, pointedTo(m.value)})
		}
	}
	return o
}

// omitted is a text that is left out if empty.
type omitted string

func pointedTo(v any) any {
	if _, ok := v.(Documenter); ok {
		return v
	}
	return reflect.ValueOf(v).Elem().Interface()
}

// UnmarshalJSON implements json.Unmarshaler. It reads members in the order of the bindings.
func (b bound) UnmarshalJSON(raw []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	for _, m := range b {
		if text, ok := members[m.key]; ok {
			if err := decodeInto(text, m.value); err != nil {
				return fmt.Errorf("%s: %w", m.key, err)
			}
		}
	}
	return nil
}

func decodeInto(raw json.RawMessage, v any) error {
	if u, ok := v.(json.Unmarshaler); ok {
		return u.UnmarshalJSON(raw)
	}
	return json.Unmarshal(raw, v)
}

// codec encodes and decodes a value of a document.
type codec struct {
	write func() any
	read  func(raw []byte) error
}

// Document implements [Documenter].
func (c codec) Document() any { return c.write() }

// UnmarshalJSON implements json.Unmarshaler.
func (c codec) UnmarshalJSON(raw []byte) error { return c.read(raw) }

// decoded returns a reader that passes the decoded value to take.
func decoded[T any](take func(T) error) func(raw []byte) error {
	return func(raw []byte) error {
		var v T
		if err := json.Unmarshal(raw, &v); err != nil {
			return err
		}
		return take(v)
	}
}

// moment is a duration in seconds.
type moment time.Duration

// Document implements [Documenter].
func (m moment) Document() any { return time.Duration(m).Seconds() }

// UnmarshalJSON implements json.Unmarshaler.
func (m *moment) UnmarshalJSON(raw []byte) error {
	var seconds float64
	err := json.Unmarshal(raw, &seconds)
	*m = moment(capture.Seconds(seconds))
	return err
}

// nullIfZero binds a value whose zero is encoded as null.
func nullIfZero[T comparable](value *T) codec {
	return nullUnless(func() bool { return *value != *new(T) }, value)
}

// nullUnless binds a value that is null unless present returns true.
func nullUnless(present func() bool, value any) codec {
	return codec{func() any {
		if !present() {
			return nil
		}
		return pointedTo(value)
	}, func(raw []byte) error {
		if string(raw) == "null" {
			return nil
		}
		return decodeInto(raw, value)
	}}
}

// listOf binds a list whose elements are bound.
func listOf[T any](list *[]T, bind func(*T) bound) codec {
	return codec{func() any {
		out := []any{}
		for i := range *list {
			out = append(out, bind(&(*list)[i]))
		}
		return out
	}, elements(func(n int) {
		if n > 0 {
			*list = make([]T, n)
		}
	}, func(i int, raw []byte) error { return bind(&(*list)[i]).UnmarshalJSON(raw) })}
}

// elements returns a reader of a list. It calls make with the length, and read for each element.
func elements(make func(n int), read func(i int, raw []byte) error) func(raw []byte) error {
	return decoded(func(list []json.RawMessage) error {
		make(len(list))
		for i, raw := range list {
			if err := read(i, raw); err != nil {
				return fmt.Errorf("%d: %w", i, err)
			}
		}
		return nil
	})
}
