package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// member is one key of an object.
type member struct {
	key   string
	value any
}

// object is a JSON object whose keys keep their order.
type object []member

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := encode(&b, m.key, ""); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := encode(&b, m.value, ""); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// encode writes v as JSON with a trailing newline, without the escapes that
// only HTML needs.
func encode(w io.Writer, v any, indent string) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	return e.Encode(v)
}

// number is a value as JSON can hold it: nil where it is absent or not finite.
func number(o stat.Opt) any {
	if !o.OK || math.IsNaN(o.V) || math.IsInf(o.V, 0) {
		return nil
	}
	return o.V
}

// clean turns any value of the contract into one that JSON can always hold:
// structs become objects by their json tags, numbers that are not finite become
// null, a nil slice becomes an empty array and a nil map an empty object.
func clean(v any) any { return cleanValue(reflect.ValueOf(v)) }

func cleanValue(v reflect.Value) any {
	if !v.IsValid() {
		return nil
	}
	switch x := v.Interface().(type) {
	case stat.Opt:
		return number(x)
	case capture.Distribution, optrace.Distribution, optrace.OptTime:
		return x // null where nothing was observed
	case optrace.Observer:
		return cleanObserver(x)
	case optrace.Coverage:
		return cleanCoverage(x)
	case capture.Row:
		if number(x.Mean) == nil && number(x.Peak) == nil {
			x.Reason = cmp.Or(x.Reason, "not measured")
		}
		return cleanStruct(reflect.ValueOf(x))
	}
	switch v.Kind() {
	case reflect.Float64, reflect.Float32:
		return number(stat.Some(v.Float()))
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return cleanValue(v.Elem())
	case reflect.Slice, reflect.Array:
		list := make([]any, 0, v.Len())
		for i := range v.Len() {
			list = append(list, cleanValue(v.Index(i)))
		}
		return list
	case reflect.Map:
		if v.IsNil() {
			return object{}
		}
	case reflect.Struct:
		return cleanStruct(v)
	}
	return v.Interface()
}

// standsForNone says that a number is the one that its field's tag absent has for a value
// that is not known.
func standsForNone(f reflect.StructField, v reflect.Value) bool {
	none, tagged := f.Tag.Lookup("absent")
	if !tagged {
		return false
	}
	if v.CanFloat() {
		return strconv.FormatFloat(v.Float(), 'g', -1, 64) == none
	}
	return strconv.FormatInt(v.Int(), 10) == none
}

func cleanStruct(v reflect.Value) object {
	o := object{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case f.Anonymous && name == "":
			o = append(o, cleanStruct(v.Field(i))...)
		case rest == "omitempty" && v.Field(i).IsZero():
		case name == "":
			o = append(o, member{f.Name, cleanValue(v.Field(i))})
		case standsForNone(f, v.Field(i)):
			o = append(o, member{name, nil})
		default:
			o = append(o, member{name, cleanValue(v.Field(i))})
		}
	}
	return o
}
