package launch

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// With returns a copy in which a flag has the given value. It changes the flag in place:
// on the command line, in its present spelling, else in the config file. A new flag is
// appended to the command line in the style of the other flags. "true" and "false" set a
// boolean flag by its bare name, its --no- form, or its removal if there is no such form.
// "compilation_config.mode" sets one key of a JSON flag and keeps the others. Values of a
// list flag are separated by blanks. If the flag already has the value, the copy is equal.
func (c *Config) With(flag, value string) *Config { return c.set(flag, value, false) }

// Override is like [Config.With] but never changes the config file: it overrides settings
// of the file on the command line. It is for callers that must not write the user's file.
// Sub-keys of a JSON flag in the file ("compilation-config.mode: 3") cannot be overridden
// by a whole object; they still take precedence.
func (c *Config) Override(flag, value string) *Config { return c.set(flag, value, true) }

func (c *Config) set(flag, value string, keepFile bool) *Config {
	name := c.grammar().canonical(flag)
	if values, from, ok := c.values(name); ok && from != Env && strings.Join(values, " ") == value {
		return c.clone()
	}
	head, rest, dotted := strings.Cut(name, ".")
	if dotted {
		return c.setKey(head, strings.Split(rest, "."), value, keepFile)
	}
	if name == "model" {
		return c.setModel(value, keepFile)
	}
	if off := truth(value); c.grammar().kindOf(name) == kindTrue && off.known && !off.value {
		return c.Without(name)
	}
	d := c.clone().dropAll(func(it item) bool { // sub-keys would win over a whole object
		return it.name == name && len(it.path) > 0 && (it.source == Cmdline || !keepFile && it.node >= 0)
	})
	if it := d.items.last(name); it != nil {
		if it.source == Cmdline {
			return d.replace(*it, value)
		}
		if !keepFile && it.node >= 0 && it.fitsFile(value) {
			if f, err := d.file.set(it.node, value); err == nil {
				return d.with(d.cmd, f)
			}
		}
	}
	return d.appendFlag(name, value)
}

// fitsFile reports whether a config file can hold the value. A list of several values
// cannot be written as one scalar, and false has no effect in the file.
func (it *item) fitsFile(value string) bool {
	if it.g.kindOf(it.name) == kindBool || it.g.kindOf(it.name) == kindUnknown {
		if t := truth(value); t.known && !t.value {
			return false
		}
	}
	return it.g.kindOf(it.name) != kindList || !strings.Contains(value, " ")
}

// Without returns a copy in which a flag is given neither on the command line nor in the
// config file, so that vLLM's default applies.
func (c *Config) Without(flag string) *Config {
	name := c.grammar().canonical(flag)
	d := c.clone()
	if head, rest, dotted := strings.Cut(name, "."); dotted {
		return d.dropKey(head, strings.Split(rest, "."))
	}
	return d.dropAll(func(it item) bool { return it.matches(name) && (it.source == Cmdline || it.node >= 0) })
}

// dropAll returns a copy without the matching items, on the command line and in the file.
func (c *Config) dropAll(match func(item) bool) *Config {
	for {
		i := slices.IndexFunc(c.items, match)
		if i < 0 {
			return c
		}
		it := c.items[i]
		if it.source == Cmdline {
			c = c.edit(func(ws []word) []word { return slices.Delete(ws, it.at, it.at+it.n) })
			continue
		}
		f, err := c.file.remove(it.node)
		if err != nil {
			// A file that parsed and cannot be written without one key keeps it; the item is
			// dropped from view so that this ends.
			c = c.clone()
			c.items = slices.DeleteFunc(c.items, func(o item) bool { return o.source == ConfigFile && o.node == it.node })
			continue
		}
		c = c.with(c.cmd, f)
	}
}

func (it *item) matches(name string) bool {
	return it.name == name || (name == "model" && it.name == "" && !it.ignored)
}

// edit returns a copy with change applied to its words.
func (c *Config) edit(change func([]word) []word) *Config {
	return c.with(c.cmd.edited(change), c.file)
}

// with returns a copy with another command and config file. Its items are those of the
// file, then those of the command line.
func (c *Config) with(cmd *command, f file) *Config {
	d := c.clone()
	d.cmd, d.file = cmd, f
	l := cmd.launch()
	d.items = slices.Concat(f.items(l.g, l.form), l.g.scan(l.ws, l.args, l.form))
	return d
}

// replace changes the value of an item of the command line.
func (c *Config) replace(it item, value string) *Config {
	bare := it.negated || len(it.values) == 0
	if bare && truth(value).known {
		return c.splice(it, []string{boolSpelling(it, value)})
	}
	values := []string{value}
	if it.g.kindOf(it.name) == kindList {
		values = strings.Fields(value)
	}
	return c.splice(it, spell(it.spelled, values, it.inline && len(values) == 1))
}

// boolSpelling returns the flag's name or its --no- form, in the item's spelling.
func boolSpelling(it item, value string) string {
	sep := "-"
	if strings.Contains(strings.TrimLeft(it.spelled, "-"), "_") {
		sep = "_"
	}
	name := strings.ReplaceAll(it.name, "_", sep)
	if t := truth(value); t.known && !t.value {
		return "--no" + sep + name
	}
	if it.negated {
		return "--" + name
	}
	return it.spelled
}

// spell returns the words of a flag with its values.
func spell(flag string, values []string, inline bool) []string {
	if inline {
		return []string{flag + "=" + values[0]}
	}
	return append([]string{flag}, values...)
}

// splice returns a copy in which words replace those of an item.
func (c *Config) splice(it item, with []string) *Config {
	return c.edit(func(ws []word) []word {
		return slices.Concat(ws[:it.at], c.cmd.newWords(with, ws[it.at].gap), ws[it.at+it.n:])
	})
}

// newWords returns words for the innermost command, quoted if it is in a script.
func (c *command) newWords(texts []string, gap string) []word {
	ws := words(texts)
	for i := range ws {
		ws[i].gap = " "
		if c.launch().shell {
			ws[i].raw = Quote(texts[i])
		}
	}
	if len(ws) > 0 && gap != "" {
		ws[0].gap = gap
	}
	return ws
}

// appendFlag adds a flag at the end of the command line.
func (c *Config) appendFlag(name, value string) *Config {
	flag := "--" + c.items.style(name)
	values := []string{value}
	switch k, t := c.grammar().kindOf(name), truth(value); {
	case (k == kindBool || k == kindUnknown && looksBool(name)) && t.known && !t.value:
		flag, values = "--"+c.items.style("no_"+name), nil
	case (k == kindBool || k == kindTrue || k == kindUnknown && looksBool(name)) && t.known:
		values = nil
	case k == kindList:
		values = strings.Fields(value)
	}
	inline := len(values) == 1 && c.items.inlineStyle()
	return c.insert(spell(flag, values, inline))
}

// insert returns a copy with words after the last flag, but before a lone "--", which ends
// the flags, and before a sub-key without a value, which would take the next word.
func (c *Config) insert(texts []string) *Config {
	l := c.cmd.launch()
	return c.edit(func(ws []word) []word {
		at := len(ws)
		if i := c.items.terminator(ws, l.args); i >= 0 {
			at = i
		} else if last := len(c.items) - 1; last >= 0 && c.items[last].dangling() {
			at = c.items[last].at
		}
		return slices.Insert(ws, at, c.cmd.newWords(texts, "")...)
	})
}

// terminator returns the position of the lone "--" that ends the flags, -1 if there is
// none. A "--" after a sub-key is the value of the sub-key.
func (list items) terminator(ws []word, from int) int {
	for i := from; i < len(ws); i++ {
		taken := func(it item) bool {
			return it.source == Cmdline && (it.name != "" || len(it.path) > 0) && it.at <= i && i < it.at+it.n
		}
		if ws[i].text == "--" && !slices.ContainsFunc(list, taken) {
			return i
		}
	}
	return -1
}

// dangling reports whether the item is a sub-key that takes any next word, but is the last.
func (it *item) dangling() bool {
	return it.source == Cmdline && len(it.path) > 0 && !it.inline && it.n == 1
}

// style returns a name in the style of the command line's flags: with dashes, unless its
// flags have underscores and none has dashes.
func (list items) style(name string) string {
	underscored, dashed := 0, 0
	for _, it := range list {
		bare := strings.TrimLeft(it.spelled, "-")
		if it.source == Cmdline && it.name != "" {
			underscored += min(1, strings.Count(bare, "_"))
			dashed += min(1, strings.Count(bare, "-"))
		}
	}
	if underscored > dashed {
		return name
	}
	return dashes(name)
}

// inlineStyle reports whether most values follow an equals sign.
func (list items) inlineStyle() bool {
	n := 0
	for _, it := range list {
		switch {
		case it.source != Cmdline || it.name == "" || len(it.values) != 1:
		case it.inline:
			n++
		default:
			n--
		}
	}
	return n > 0
}

// setModel returns a copy with another model, changed in place.
func (c *Config) setModel(value string, keepFile bool) *Config {
	for _, it := range c.items {
		if it.name == "" && !it.ignored {
			return c.splice(it, []string{value})
		}
	}
	it := c.items.last("model")
	switch {
	case it != nil && it.source == Cmdline:
		return c.replace(*it, value)
	case it != nil && it.node >= 0 && !keepFile:
		if f, err := c.file.set(it.node, value); err == nil {
			return c.with(c.cmd, f)
		}
	}
	if l := c.cmd.launch(); l.form == formServe {
		return c.edit(func(ws []word) []word { return slices.Insert(ws, l.args, c.cmd.newWords([]string{value}, "")...) })
	}
	return c.appendFlag("model", value)
}

// setKey returns a copy with one key of a JSON flag set, by setting the whole object.
func (c *Config) setKey(head string, path []string, value string, keepFile bool) *Config {
	root := c.object(head)
	mergeInto(root, path, dottedValue(value, false))
	return c.set(head, encodeJSON(root), keepFile)
}

// dropKey returns a copy without one key of a JSON flag.
func (c *Config) dropKey(head string, path []string) *Config {
	root := c.object(head)
	at := root
	for _, key := range path[:len(path)-1] {
		at, _ = at[key].(map[string]any)
	}
	last := path[len(path)-1]
	if _, found := at[last]; !found {
		return c
	}
	delete(at, last)
	return c.set(head, encodeJSON(root), false)
}

// object returns the JSON object that is the value of a flag, also one given by its keys; an empty one if there is
// none.
func (c *Config) object(name string) map[string]any {
	if values, _, ok := c.values(name); ok {
		if root, ok := object(strings.Join(values, " ")); ok {
			return root
		}
	}
	return map[string]any{}
}

// WithVariable returns a copy with an environment variable set.
func (c *Config) WithVariable(name, value string) *Config {
	d := c.clone()
	if d.env == nil {
		d.env = map[string]string{}
	}
	d.env[name] = value
	return d
}

func (c *Config) clone() *Config {
	d := *c
	d.env = maps.Clone(c.env)
	return &d
}

// Argv returns the argument vector that starts the server, wrappers included. It may hold
// secrets.
func (c *Config) Argv() []string { return c.cmd.argv() }

// Shell returns [Config.Argv] as one line for a POSIX shell. It may hold secrets.
func (c *Config) Shell() string {
	if c.typed {
		return c.cmd.child.text()
	}
	return Line(c.cmd.argv()...)
}

// File returns the text of the config file, edits included; nil if there is none. It may
// hold secrets.
func (c *Config) File() []byte { return bytes.Clone(c.file.text) }
