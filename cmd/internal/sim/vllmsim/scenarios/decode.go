package scenarios

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// decoder decodes a YAML tree into structs, strictly: an unknown or duplicate field, or a value of the wrong
// kind, is an error with file, line and field. Absent fields keep their values, so that a pair can be decoded
// on top of its case.
type decoder struct{ file string }

// text is a value that is parsed from one word or line.
type text interface{ parse(string) error }

func (d decoder) fail(n *yaml.Node, path, format string, args ...any) error {
	where := fmt.Sprintf("%s:%d: ", d.file, n.Line)
	if path != "" {
		where += path + ": "
	}
	return fmt.Errorf("%s%w", where, fmt.Errorf(format, args...))
}

func (d decoder) value(n *yaml.Node, into reflect.Value, path string) error {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return d.fail(n, path, "anchors and aliases are not supported")
	}
	if t, ok := into.Addr().Interface().(text); ok {
		if n.Kind != yaml.ScalarNode {
			return d.fail(n, path, "one line of text is expected")
		}
		if err := t.parse(n.Value); err != nil {
			return d.fail(n, path, "%w", err)
		}
		return nil
	}
	switch into.Interface().(type) {
	case time.Duration:
		v, err := time.ParseDuration(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil || v < 0 {
			return d.fail(n, path, "%q is not a duration such as 90s or 250ms", n.Value)
		}
		into.SetInt(int64(v))
		return nil
	case []Flag:
		return d.flags(n, into, path)
	}
	switch into.Kind() {
	case reflect.Struct:
		return d.fields(n, into, path)
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		return d.value(n, into.Elem(), path)
	case reflect.Slice:
		return d.list(n, into, path)
	}
	return d.scalar(n, into, path)
}

func (d decoder) fields(n *yaml.Node, into reflect.Value, path string) error {
	if n.Kind != yaml.MappingNode {
		return d.fail(n, path, "fields are expected")
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		field, names := fieldOf(into, key.Value)
		if !field.IsValid() {
			return d.fail(key, path, "%q is not a field here; there are %s", key.Value, strings.Join(names, ", "))
		}
		if seen[key.Value] {
			return d.fail(key, path, "%q is there twice", key.Value)
		}
		seen[key.Value] = true
		if err := d.value(value, field, join(path, key.Value)); err != nil {
			return err
		}
	}
	return nil
}

// fieldOf returns the field of a struct with a YAML name; names lists the YAML names of all fields.
func fieldOf(v reflect.Value, name string) (field reflect.Value, names []string) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			inner, more := fieldOf(v.Field(i), name)
			names = append(names, more...)
			if inner.IsValid() {
				field = inner
			}
			continue
		}
		tag := f.Tag.Get("yaml")
		if tag == "" {
			continue
		}
		names = append(names, tag)
		if tag == name {
			field = v.Field(i)
		}
	}
	return field, names
}

// list decodes a sequence. If its entries are scalars, a single scalar counts as a list of one.
func (d decoder) list(n *yaml.Node, into reflect.Value, path string) error {
	entries := n.Content
	if n.Kind == yaml.ScalarNode && into.Type().Elem().Kind() != reflect.Struct {
		entries = []*yaml.Node{n}
	} else if n.Kind != yaml.SequenceNode {
		return d.fail(n, path, "a list is expected")
	}
	out := reflect.MakeSlice(into.Type(), len(entries), len(entries))
	for i, e := range entries {
		if err := d.value(e, out.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	into.Set(out)
	return nil
}

// flags decodes a mapping of flags in the order of the file.
func (d decoder) flags(n *yaml.Node, into reflect.Value, path string) error {
	if n.Kind != yaml.MappingNode {
		return d.fail(n, path, "flags with their values are expected, as in max-num-seqs: 64")
	}
	var out []Flag
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if value.Kind != yaml.ScalarNode || strings.HasPrefix(key.Value, "-") {
			return d.fail(key, path, "a flag is its bare name and one value, as in max-num-seqs: 64")
		}
		out = append(out, Flag{key.Value, value.Value})
	}
	into.Set(reflect.ValueOf(out))
	return nil
}

func (d decoder) scalar(n *yaml.Node, into reflect.Value, path string) error {
	if n.Kind != yaml.ScalarNode {
		return d.fail(n, path, "one value is expected")
	}
	var err error
	switch into.Kind() {
	case reflect.String:
		into.SetString(strings.TrimSpace(n.Value))
	case reflect.Int:
		var v int64
		v, err = strconv.ParseInt(n.Value, 10, 32)
		into.SetInt(v)
	case reflect.Float64:
		var v float64
		v, err = strconv.ParseFloat(n.Value, 64)
		into.SetFloat(v)
	case reflect.Bool:
		var v bool
		v, err = strconv.ParseBool(n.Value)
		into.SetBool(v)
	default:
		panic("scenarios: no way to read a " + into.Type().String())
	}
	if err != nil {
		names := map[reflect.Kind]string{reflect.Int: "a whole number", reflect.Bool: "true or false", reflect.Float64: "a number"}
		return d.fail(n, path, "%q is not %s", n.Value, names[into.Kind()])
	}
	return nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
