package launch

import (
	"regexp"
	"slices"
	"strings"
)

// item is one flag as given, on the command line or in the config file.
type item struct {
	g       *grammar
	name    string   // canonical; "" for a lone word
	path    []string // sub-keys after a dot
	plus    bool     // --flag.key+ v1,v2 adds to a list
	source  Source
	values  []string
	negated bool // --no-NAME
	inline  bool // value after an equals sign
	opaque  bool // a value cannot be known here
	ignored bool // vLLM does not act on it
	note    string

	at, n   int    // words it takes on the command line: ws[at : at+n]
	spelled string // as it stands, without "=value"
	node    int    // index of its key in the config file's root mapping
}

// scan parses the words after the call into items.
func (g *grammar) scan(ws []word, from int, f form) []item {
	var items []item
	for i := from; i < len(ws); {
		it := g.scanOne(ws, i)
		if it.name == "" && ws[i].text == "--" {
			// All following words are positional.
			for i++; i < len(ws); i++ {
				items = append(items, g.lone(ws, i))
			}
			break
		}
		items = append(items, it)
		i += it.n
	}
	for i := range items {
		if items[i].name == "" && f == formModule {
			items[i].ignored = true
			items[i].note = "the module takes its model from a flag only: a word without one has no effect"
			if g == &vllm {
				items[i].note = "the api_server module takes its model from --model only: a word without a flag has no effect"
			}
		}
	}
	return items
}

func (g *grammar) lone(ws []word, i int) item {
	return item{g: g, source: Cmdline, at: i, n: 1, values: []string{ws[i].text}, opaque: ws[i].opaque}
}

func (g *grammar) scanOne(ws []word, i int) item {
	text := ws[i].text
	if !isFlag(text) || text == "--" {
		return g.lone(ws, i)
	}
	it := item{g: g, source: Cmdline, at: i, n: 1, spelled: text}
	value, hasValue := "", false
	if head, v, ok := strings.Cut(text, "="); ok {
		it.spelled, value, hasValue = head, v, true
	}
	it.opaque = ws[i].opaque
	rest := ""
	it.name, it.path, it.plus, rest = it.resolve()
	if rest != "" {
		value, hasValue = rest, true
	}
	if len(it.path) > 0 {
		if !hasValue && i+1 < len(ws) {
			value = ws[i+1].text
			it.opaque = it.opaque || ws[i+1].opaque
			it.n = 2
			it.values = []string{value}
			return it
		}
		it.inline, it.values = hasValue, []string{value}
		return it
	}
	if hasValue {
		it.inline, it.values = true, []string{value}
		return it
	}
	for k := it.takes(); it.n-1 < k && i+it.n < len(ws); it.n++ {
		next := ws[i+it.n]
		if isFlag(next.text) || (it.g.kindOf(it.name) == kindBool && !truth(next.text).known) {
			break
		}
		it.values = append(it.values, next.text)
		it.opaque = it.opaque || next.opaque
	}
	if it.name == "optimization_level" && len(it.values) == 1 && strings.HasPrefix(it.values[0], "{") {
		it.name = "compilation_config"
	}
	return it
}

// takes returns the largest number of words after the flag that are its values.
func (it *item) takes() int {
	if it.negated {
		return 0
	}
	switch it.g.kindOf(it.name) {
	case kindTrue:
		return 0
	case kindList:
		return 1 << 30
	case kindBool:
		return 1 // releases before 0.9 took `--enable-chunked-prefill false`
	case kindUnknown:
		if looksBool(it.name) {
			return 0
		}
	}
	return 1
}

// looksBool reports whether a name that the table lacks is probably boolean: every flag of
// the table with such a prefix takes no value.
func looksBool(name string) bool {
	head, _, _ := strings.Cut(name, "_")
	return slices.Contains([]string{"enable", "disable", "use", "skip", "no", "is", "return"}, head)
}

// resolve returns the canonical name of the item's spelling. rest is a value attached to a
// one-letter flag.
func (it *item) resolve() (name string, keys []string, plus bool, rest string) {
	spelled := it.spelled
	head, dotted, isDotted := strings.Cut(spelled, ".")
	if isDotted {
		if dotted, plus = strings.CutSuffix(dotted, "+"); dotted != "" {
			keys = strings.Split(dotted, ".")
		}
	}
	if !strings.HasPrefix(spelled, "--") {
		if name, rest := it.resolveShort(head, isDotted); name != "" {
			return name, keys, plus, rest
		}
	}
	name = it.g.canonical(head)
	if it.g.kindOf(name) != kindUnknown {
		return name, keys, plus, ""
	}
	if positive, ok := strings.CutPrefix(name, "no_"); ok {
		if it.g.kindOf(positive) == kindUnknown {
			positive = it.complete(positive, true)
		}
		if it.g.kindOf(positive) == kindBool || it.g.kindOf(positive) == kindUnknown {
			it.negated = true
			return positive, keys, plus, ""
		}
	}
	return it.complete(name, false), keys, plus, ""
}

// resolveShort resolves a flag with one dash.
func (it *item) resolveShort(head string, dotted bool) (name, rest string) {
	if name, ok := it.g.short[head]; ok {
		if positive, off := strings.CutPrefix(name, "no_"); off && it.g.kindOf(positive) == kindBool { // -nocb
			it.negated = true
			return positive, ""
		}
		return name, ""
	}
	if it.g.exact {
		return "", ""
	}
	if strings.HasPrefix(head, "-O") && it.g == &vllm {
		return it.optimization(head, dotted)
	}
	// Only one-letter flags may have an attached value (argparse).
	if len(head) > 2 {
		if name, ok := it.g.short[head[:2]]; ok {
			return name, it.glued()
		}
	}
	var matches []string
	for s, name := range it.g.short {
		if strings.HasPrefix(s, head) {
			matches = append(matches, name)
		}
	}
	if len(matches) == 1 && len(head) > 1 {
		it.note = head + " read as --" + dashes(matches[0])
		return matches[0], ""
	}
	return "", ""
}

func (it *item) glued() string {
	rest := it.spelled[2:]
	it.spelled = it.spelled[:2]
	return rest
}

// optimization resolves -O: a level since 0.12, the compilation config before (0.8 to
// 0.11), where a bare number was also a level.
func (it *item) optimization(head string, dotted bool) (name, rest string) {
	if dotted {
		return "compilation_config", ""
	}
	if level := head[2:]; level != "" {
		return "optimization_level", it.glued()
	}
	return "optimization_level", ""
}

// complete returns the only flag with the given prefix, as argparse does, and adds a note to
// the item. With several candidates it returns the name unchanged.
func (it *item) complete(name string, negated bool) string {
	if len(name) < 3 || it.g.exact {
		return name
	}
	all := it.g.abbreviated(name)
	if negated {
		all = slices.DeleteFunc(all, func(n string) bool { return it.g.kindOf(n) != kindBool })
	}
	switch len(all) {
	case 0:
		return name
	case 1:
		it.note = it.spelled + " read as --" + dashes(all[0]) + " (abbreviated)"
		return all[0]
	}
	it.note = it.spelled + " is not a known flag, and could be short for --" + dashes(all[0]) + " or --" + dashes(all[1])
	return name
}

func dashes(name string) string { return strings.ReplaceAll(name, "_", "-") }

var negativeNumber = regexp.MustCompile(`^-(\d+|\d*\.\d+)$`)

// isFlag reports whether a word is a flag, by argparse's rules: a single dash, a negative
// number and a word with a blank are values.
func isFlag(s string) bool {
	if len(s) < 2 || s[0] != '-' || negativeNumber.MatchString(s) {
		return false
	}
	head, _, _ := strings.Cut(s, "=")
	return !strings.Contains(head, " ")
}

type truthValue struct{ value, known bool }

// truth parses a boolean word of Python or YAML 1.1.
func truth(s string) truthValue {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "true", "1", "yes", "on":
		return truthValue{true, true}
	case "false", "0", "no", "off":
		return truthValue{false, true}
	}
	return truthValue{}
}
