package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// checker checks a user's file before it is decoded and collects all problems, by line and field.
type checker struct {
	file     string
	problems []problem
}

type problem struct {
	line int
	err  error
}

// add adds a problem at the line of a node; field may be "".
func (v *checker) add(n *yaml.Node, field, format string, args ...any) {
	where := fmt.Sprintf("%s:%d: ", v.file, n.Line)
	if field != "" {
		where += field + ": "
	}
	v.problems = append(v.problems, problem{n.Line, fmt.Errorf("%s"+format, append([]any{where}, args...)...)})
}

// sorted returns the problems in order of line.
func (v *checker) sorted() []error {
	slices.SortStableFunc(v.problems, func(a, b problem) int { return cmp.Compare(a.line, b.line) })
	var out []error
	for _, p := range v.problems {
		out = append(out, p.err)
	}
	return out
}

func (v *checker) document(doc *yaml.Node) {
	if v.aliases(doc); len(v.problems) > 0 {
		return
	}
	root := doc.Content[0]
	top := v.fields(root, "", reflect.TypeFor[userFile]())
	if len(v.problems) == 0 && top["gpus"] == nil && top["cpus"] == nil && top["models"] == nil {
		v.add(root, "", `no list "gpus", "cpus" or "models"`)
	}
	v.entries(top["gpus"], "name", reflect.TypeFor[GPU](), v.gpu)
	v.entries(top["cpus"], "name", reflect.TypeFor[CPU](), v.cpu)
	v.entries(top["models"], "id", reflect.TypeFor[Model](), v.model)
}

// aliases rejects anchors and aliases: a few lines of them can expand to gigabytes, and no catalog
// needs them.
func (v *checker) aliases(n *yaml.Node) {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		v.add(n, "", "anchors and aliases are not supported")
		return
	}
	for _, child := range n.Content {
		v.aliases(child)
	}
}

func (v *checker) entries(list *yaml.Node, key string, typ reflect.Type, check func(n *yaml.Node, f map[string]*yaml.Node)) {
	if list == nil || list.Kind != yaml.SequenceNode {
		return
	}
	lines := make(map[string]int)
	for _, n := range list.Content {
		before := len(v.problems)
		f := v.fields(n, "", typ)
		if name := f[key]; name != nil {
			id := strings.ToLower(name.Value)
			if line, ok := lines[id]; ok {
				v.add(name, key, "%q is already in line %d", name.Value, line)
			}
			lines[id] = name.Line
		}
		if n.Kind == yaml.MappingNode {
			v.structs(f, typ)
			// Fields are checked together only if each of them is valid.
			v.require(n, f, key)
			if len(v.problems) == before {
				check(n, f)
			}
		}
	}
}

// structs checks the blocks inside an entry.
func (v *checker) structs(f map[string]*yaml.Node, typ reflect.Type) {
	for name, inner := range nested(typ) {
		if n := f[name]; n != nil && n.Kind == yaml.MappingNode {
			fields := v.fields(n, name+".", inner)
			for _, required := range requiredIn[name] {
				if fields[required] == nil {
					v.add(n, name+"."+required, "missing")
				}
			}
		}
	}
}

var requiredIn = map[string][]string{
	"achieved": {"gemm_bandwidth", "attn_bandwidth", "gemm_compute", "prefill_attn"},
	"price":    {"as_of"},
}

func (v *checker) require(n *yaml.Node, f map[string]*yaml.Node, names ...string) {
	for _, name := range names {
		if f[name] == nil {
			v.add(n, name, "missing")
		}
	}
}

// fields checks a mapping against the fields of a struct, one by one, and
// returns the values by key.
func (v *checker) fields(n *yaml.Node, prefix string, typ reflect.Type) map[string]*yaml.Node {
	out := make(map[string]*yaml.Node)
	if n.Kind != yaml.MappingNode {
		v.add(n, strings.TrimSuffix(prefix, "."), "must be a block of \"field: value\"")
		return out
	}
	known := yamlFields(typ)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		field, ok := known[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || !ok:
			v.add(key, prefix+key.Value, "unknown field%s", suggestion(key.Value, known))
		case out[key.Value] != nil:
			v.add(key, prefix+key.Value, "given twice")
		default:
			out[key.Value] = value
			v.value(value, prefix+key.Value, field)
		}
	}
	return out
}

func suggestion(name string, known map[string]reflect.Type) string {
	best, distant := "", 4
	for _, k := range slices.Sorted(maps.Keys(known)) {
		if len(name) <= maxCompared {
			if d := Distance(name, k); d < distant {
				best, distant = k, d
			}
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (%s?)", best)
}

// scalars lists the YAML tags that are valid for a kind of field, and the requirement for error
// messages.
var scalars = map[reflect.Kind]struct{ tags, must string }{
	reflect.String:  {"!!str !!timestamp", "text (in quotes)"},
	reflect.Bool:    {"!!bool", "true or false"},
	reflect.Int:     {"!!int", "a whole number"},
	reflect.Float64: {"!!int !!float", "a number"},
}

func (v *checker) value(n *yaml.Node, field string, typ reflect.Type) {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	tag := n.ShortTag()
	if tag == "!!null" {
		v.add(n, field, "has no value")
		return
	}
	if s, ok := scalars[typ.Kind()]; ok && (n.Kind != yaml.ScalarNode || !slices.Contains(strings.Fields(s.tags), tag)) {
		v.add(n, field, "must be %s", s.must)
		return
	}
	switch typ.Kind() {
	case reflect.String:
		v.text(n, field, typ)
	case reflect.Int, reflect.Float64:
		v.checkNumber(n, field)
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			v.add(n, field, "must be a list")
			return
		}
		if typ.Elem().Kind() == reflect.String {
			for _, item := range n.Content {
				v.value(item, field, typ.Elem())
			}
		}
	case reflect.Struct:
		if n.Kind != yaml.MappingNode {
			v.add(n, field, "must be a block of \"field: value\"")
		}
	}
}

// maxText bounds names and sources, in bytes.
const maxText = 4096

func (v *checker) text(n *yaml.Node, field string, typ reflect.Type) {
	allowed := func(values ...string) {
		if !slices.Contains(values, n.Value) {
			v.add(n, field, "must be one of %s, not %q", strings.Join(values, ", "), n.Value)
		}
	}
	switch {
	case strings.TrimSpace(n.Value) == "":
		v.add(n, field, "is empty")
	case len(n.Value) > maxText:
		v.add(n, field, "longer than %d bytes", maxText)
	case strings.ContainsFunc(n.Value, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }):
		v.add(n, field, "has control characters") // would be sent to a terminal
	case typ == reflect.TypeFor[DType]():
		allowed(string(FP32), string(BF16), string(FP16), string(FP8), string(INT8), string(INT4), string(MXFP4), string(NVFP4))
	case typ == reflect.TypeFor[Attention]():
		allowed(string(AttentionMHA), string(AttentionGQA), string(AttentionMLA), string(AttentionHybrid))
	case field == "vendor":
		allowed("nvidia", "amd", "intel", "cpu", "other")
	}
}

func (v *checker) checkNumber(n *yaml.Node, field string) {
	var x float64
	err, b := n.Decode(&x), boundsOf(field)
	switch {
	case err != nil || math.IsNaN(x) || math.IsInf(x, 0):
		v.add(n, field, "must be a number")
	case b.zero && x < 0:
		v.add(n, field, "must be >= 0")
	case !b.zero && x <= 0:
		v.add(n, field, "must be > 0")
	case x > b.max:
		v.add(n, field, "must be at most %s (%s)", strconv.FormatFloat(b.max, 'g', -1, 64), b.unit)
	case x != 0 && x < b.min:
		v.add(n, field, "must be at least %s (%s)", strconv.FormatFloat(b.min, 'g', -1, 64), b.unit)
	}
}

// yamlFields maps the YAML names of a struct's fields to their types.
func yamlFields(typ reflect.Type) map[string]reflect.Type {
	out := make(map[string]reflect.Type)
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("yaml"), ",")
		out[name] = typ.Field(i).Type
	}
	return out
}

// nested returns the fields of a struct that are pointers to structs, which are blocks in YAML.
func nested(typ reflect.Type) map[string]reflect.Type {
	out := make(map[string]reflect.Type)
	for name, t := range yamlFields(typ) {
		if t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
			out[name] = t.Elem()
		}
	}
	return out
}
