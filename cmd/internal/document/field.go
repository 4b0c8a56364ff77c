package document

import (
	"reflect"
	"strconv"
	"strings"
	"time"
)

// field describes the encoding of a struct field.
type field struct {
	index     int
	name      string
	omitEmpty bool
	inline    bool    // its members are encoded as members of the outer struct
	line      bool    // encoded in one line
	seconds   bool    // durations are encoded in seconds
	none      *string // text of the value encoded as null
}

// fields calls write for each member of a struct, with those of embedded structs in their place.
func (e *encoder) fields(v reflect.Value, write func(f *field, v reflect.Value)) {
	list, ok := e.types[v.Type()]
	if !ok {
		list = fieldsOf(v.Type())
		e.types[v.Type()] = list
	}
	for i := range list {
		f := &list[i]
		switch x := v.Field(f.index); {
		case f.inline && x.Kind() == reflect.Pointer:
			if !x.IsNil() {
				e.fields(x.Elem(), write)
			}
		case f.inline:
			e.fields(x, write)
		case !f.omitEmpty || !x.IsZero():
			write(f, x)
		}
	}
}

func fieldsOf(t reflect.Type) []field {
	var list []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		x := field{index: i, name: name, omitEmpty: rest == "omitempty" || rest == "omitzero", inline: f.Anonymous && name == "", line: f.Tag.Get("layout") == "line"}
		if name == "" {
			x.name = f.Name
		}
		x.seconds = strings.HasSuffix(x.name, "_s")
		if none, tagged := f.Tag.Lookup("absent"); tagged {
			x.none = &none
		}
		list = append(list, x)
	}
	return list
}

var durationType = reflect.TypeFor[time.Duration]()

// field encodes the value of a field.
func (e *encoder) field(f *field, v reflect.Value) {
	switch {
	case f.none != nil && tagText(v) == *f.none:
		e.b.WriteString("null")
	case f.seconds && v.Type() == durationType:
		e.float(time.Duration(v.Int()).Seconds(), true)
	case f.seconds && v.Kind() == reflect.Slice && v.Type().Elem() == durationType:
		seconds := make([]float64, v.Len())
		for i := range seconds {
			seconds[i] = time.Duration(v.Index(i).Int()).Seconds()
		}
		e.any(seconds)
	default:
		e.value(v)
	}
}

// tagText returns a value as written in the tag absent.
func tagText(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.String:
		return v.String()
	case v.CanFloat():
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10)
	}
	return "\x00"
}
