package launch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"
)

// MaxConfigBytes is the size of the largest config file that is read. Real ones have a few
// hundred bytes.
const MaxConfigBytes = 1 << 20

// file is a config file: a YAML mapping of flag names, in either spelling, to
// values. text is kept so that an edit changes one line of it.
type file struct {
	text []byte
	doc  *yaml.Node
	root *yaml.Node // the mapping; nil in an empty file
}

func parseFile(text []byte) (file, error) {
	if len(text) > MaxConfigBytes {
		return file{}, fmt.Errorf("%d bytes, more than the %d of any real one", len(text), MaxConfigBytes)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return file{}, errors.New(hideInText(err.Error()))
	}
	f := file{text: bytes.Clone(text)}
	if len(doc.Content) == 0 || isNull(doc.Content[0]) {
		return f, nil
	}
	if doc.Content[0].Kind != yaml.MappingNode {
		return file{}, errors.New("not a mapping of flags to values")
	}
	f.doc, f.root = &doc, doc.Content[0]
	return f, nil
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// items lists the settings in the order in which vLLM turns them into
// arguments. A merge key (<<) counts before the mapping's own keys.
func (f *file) items(g *grammar, call form) []item {
	if f.root == nil {
		return nil
	}
	var items []item
	for _, base := range merges(f.root) {
		items = append(items, pairs(base, g, call, -1)...)
	}
	return append(items, pairs(f.root, g, call, 0)...)
}

// merges lists the mappings that a merge key brings in, the weakest first.
func merges(m *yaml.Node) []*yaml.Node {
	var bases []*yaml.Node
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Tag != "!!merge" && m.Content[i].Value != "<<" {
			continue
		}
		v := resolved(m.Content[i+1])
		list := []*yaml.Node{v}
		if v.Kind == yaml.SequenceNode {
			list = v.Content
		}
		for _, b := range slices.Backward(list) {
			if b = resolved(b); b.Kind == yaml.MappingNode {
				bases = append(bases, b)
			}
		}
	}
	return bases
}

func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// pairs converts a mapping's keys to items. A negative own marks keys that are defined
// outside the root mapping; the node of their items is -1.
func pairs(m *yaml.Node, g *grammar, call form, own int) []item {
	var items []item
	for i := 0; i+1 < len(m.Content); i += 2 {
		key := m.Content[i]
		if key.Kind != yaml.ScalarNode || key.Value == "<<" {
			continue
		}
		it := fileItem(g, key.Value, resolved(m.Content[i+1]), call)
		it.node = i
		if own < 0 {
			it.node = -1
		}
		items = append(items, it)
	}
	return items
}

const quotedStyles = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

// plainBool has the words that YAML 1.1, and so vLLM's reader, treats as booleans if they
// are not quoted.
var plainBool = regexp.MustCompile(`^(true|True|TRUE|yes|Yes|YES|on|On|ON|false|False|FALSE|no|No|NO|off|Off|OFF)$`)

// fileItem converts a setting to an item as load_config_file in
// vllm/utils/argparse_utils.py does.
func fileItem(g *grammar, key string, value *yaml.Node, call form) item {
	it := item{g: g, source: ConfigFile, spelled: "--" + key, n: 0}
	it.name, it.path, it.plus, _ = it.resolve()
	switch value.Kind {
	case yaml.SequenceNode:
		for _, v := range value.Content {
			it.values = append(it.values, scalar(resolved(v)))
		}
		it.ignored = len(it.values) == 0
	case yaml.MappingNode:
		budget := maxNodes
		it.values = []string{encodeJSON(plain(value, &budget))}
		it.opaque = budget < 0
	case yaml.ScalarNode:
		if value.Style&quotedStyles == 0 && plainBool.MatchString(value.Value) {
			it.boolean(key, truth(value.Value).value, call)
			break
		}
		it.values = []string{scalar(value)}
	default:
		it.opaque = true
	}
	if len(it.path) > 0 && len(it.values) == 0 {
		it.values = []string{"true"}
	}
	return it
}

// boolean sets the item for a boolean setting. true becomes the bare flag. false becomes
// --no-NAME only in the api_server module, only for a key with dashes, and only in
// releases after 0.25 (vLLM issue 51401); otherwise vLLM silently drops it and the default
// applies. Tested with 0.32.0.
func (it *item) boolean(key string, value bool, call form) {
	if value {
		return
	}
	if it.negated {
		it.negated = false // "--no-x: false" would be "--no-no-x": no such flag
		it.ignored = true
	} else {
		it.negated = true
	}
	if call != formModule || strings.Contains(key, "_") {
		it.ignored = true
		it.note = key + ": false in the config file has no effect: vLLM drops a false there; give --no-" + dashes(it.name) + " on the command line"
		return
	}
	it.note = key + ": false in the config file has an effect only in releases after 0.25"
}

// scalar returns a YAML scalar as Python's str() formats it.
func scalar(n *yaml.Node) string {
	switch {
	case n.Kind != yaml.ScalarNode:
		budget := maxNodes
		return encodeJSON(plain(n, &budget))
	case isNull(n):
		return "None"
	}
	return n.Value
}

// maxNodes is the most YAML nodes of one setting. Aliases can make a short file expand
// without limit.
const maxNodes = 10_000

// plain converts YAML to JSON values by the rules of YAML 1.1, where yes and on are
// booleans. It decrements budget for each node; a negative budget means too many nodes.
func plain(n *yaml.Node, budget *int) any {
	if *budget--; *budget < 0 {
		return nil
	}
	switch n = resolved(n); n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for _, base := range merges(n) {
			if base, ok := plain(base, budget).(map[string]any); ok {
				maps.Copy(m, base)
			}
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if key := n.Content[i]; key.Value != "<<" {
				m[key.Value] = plain(n.Content[i+1], budget)
			}
		}
		return m
	case yaml.SequenceNode:
		list := []any{}
		for _, e := range n.Content {
			list = append(list, plain(e, budget))
		}
		return list
	case yaml.ScalarNode:
		return plainScalar(n)
	}
	return nil
}

func plainScalar(n *yaml.Node) any {
	switch {
	case n.Style&quotedStyles != 0:
		return n.Value
	case plainBool.MatchString(n.Value):
		return truth(n.Value).value
	case isNull(n):
		return nil
	case n.Tag == "!!int" || n.Tag == "!!float":
		if text := digits(n.Value); json.Valid([]byte(text)) {
			return json.Number(text)
		}
	}
	return n.Value
}

// set returns the file with another value for the key at an index of its root. It replaces
// a value on one line in place and otherwise encodes the file again.
func (f *file) set(at int, value string) (file, error) {
	if text, ok := f.splice(f.root.Content[at+1], yamlScalar(value)); ok {
		return parseFile(text)
	}
	return f.reencode(func(root *yaml.Node) {
		var v yaml.Node
		if err := yaml.Unmarshal([]byte(yamlScalar(value)), &v); err == nil && len(v.Content) == 1 {
			v.Content[0].LineComment = root.Content[at+1].LineComment
			root.Content[at+1] = v.Content[0]
		}
	})
}

// splice returns the text with a scalar replaced in place; false if the scalar is not on
// one line.
func (f *file) splice(old *yaml.Node, with string) ([]byte, bool) {
	from, to, ok := ScalarRange(f.text, old)
	if !ok {
		return nil, false
	}
	return slices.Concat(f.text[:from], []byte(with), f.text[to:]), true
}

// ScalarRange returns the bytes of a YAML text that spell a scalar of it, with its quotes; ok is false if that has
// an anchor or a tag, or is not on one line.
func ScalarRange(text []byte, scalar *yaml.Node) (from, to int, ok bool) {
	if scalar.Kind != yaml.ScalarNode || scalar.Anchor != "" || scalar.Style&yaml.TaggedStyle != 0 {
		return 0, 0, false
	}
	from = offset(text, scalar.Line, scalar.Column)
	if from < 0 {
		return 0, 0, false
	}
	n := scalarLen(text[from:], scalar)
	return from, from + n, n >= 0
}

// offset converts a node's line and column, both from 1 and the column in characters, to a
// byte offset; -1 outside the text.
func offset(text []byte, line, column int) int {
	at := 0
	for ; line > 1; line-- {
		i := bytes.IndexByte(text[at:], '\n')
		if i < 0 {
			return -1
		}
		at += i + 1
	}
	for ; column > 1; column-- {
		if at >= len(text) || text[at] == '\n' {
			return -1
		}
		for at++; at < len(text) && text[at]&0xC0 == 0x80; at++ {
		}
	}
	return at
}

// scalarLen returns the length of a scalar in the text, in bytes; -1 if it is not on one
// line or not written as expected.
func scalarLen(text []byte, n *yaml.Node) int {
	line := text
	if i := bytes.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0 && bytes.HasPrefix(line, []byte(`"`)):
		for i := 1; i < len(line); i++ {
			switch line[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
	case n.Style&yaml.SingleQuotedStyle != 0 && bytes.HasPrefix(line, []byte("'")):
		for i := 1; i < len(line); i++ {
			if line[i] != '\'' {
				continue
			}
			if i+1 < len(line) && line[i+1] == '\'' {
				i++
				continue
			}
			return i + 1
		}
	case n.Style&quotedStyles == 0 && n.Value != "" && bytes.HasPrefix(line, []byte(n.Value)):
		return len(n.Value)
	}
	return -1
}

// remove returns the file without the key at an index of its root. Without the last key it
// writes an empty mapping, because vLLM fails on a file without any.
func (f *file) remove(at int) (file, error) {
	if f.keys() == 1 {
		return parseFile([]byte("{}\n"))
	}
	if f.root.Style&yaml.FlowStyle == 0 {
		first := f.root.Content[at].Line
		last := bytes.Count(f.text, []byte("\n")) + 1
		if at+2 < len(f.root.Content) {
			next := f.root.Content[at+2]
			last = next.Line - 1
			if next.HeadComment != "" {
				last -= strings.Count(next.HeadComment, "\n") + 1
			}
		}
		from, to := offset(f.text, first, 1), offset(f.text, last+1, 1)
		if to < 0 {
			to = len(f.text)
		}
		if from >= 0 && from <= to && f.root.Content[at].Column == 1 {
			g, err := parseFile(slices.Concat(f.text[:from], f.text[to:]))
			if err == nil && g.keys() == f.keys()-1 {
				return g, nil
			}
		}
	}
	return f.reencode(func(root *yaml.Node) { root.Content = slices.Delete(root.Content, at, at+2) })
}

// keys returns the number of keys of the mapping.
func (f *file) keys() int {
	if f.root == nil {
		return 0
	}
	return len(f.root.Content) / 2
}

// reencode encodes the whole file again after an edit. It keeps comments but may change the
// layout.
func (f *file) reencode(edit func(root *yaml.Node)) (file, error) {
	copied, err := parseFile(f.text)
	if err != nil {
		return file{}, err
	}
	edit(copied.root)
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(copied.doc); err != nil {
		return file{}, err
	}
	return parseFile(b.Bytes())
}

// yamlScalar returns a flag's value in YAML, quoted so that vLLM reads the same text.
func yamlScalar(value string) string {
	switch {
	case strings.ContainsFunc(value, unicode.IsControl):
		return encodeJSON(value) // a JSON string is valid YAML
	case plainBool.MatchString(value), plainSafe.MatchString(value) && !otherThanText.MatchString(value):
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", "''") + "'"
}

// otherThanText matches words that YAML 1.1 does not read as text: null and octal numbers.
var otherThanText = regexp.MustCompile(`^(null|Null|NULL|0[0-7_]+)$`)

// plainSafe matches values that need no quotes: names, paths and numbers.
var plainSafe = regexp.MustCompile(`^[A-Za-z0-9_./][A-Za-z0-9_./+-]*$`)
