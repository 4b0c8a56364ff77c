package launch

import (
	"bytes"
	"slices"
	"strings"
)

// With returns a copy in which a flag has the given value. The flag is changed
// where it stands: on the command line, in the spelling found there, else in the
// config file; a new one is appended to the command line, spelled as its flags
// are. "true" and "false" set a boolean flag: its bare name, its --no- form, or
// its removal where there is no such form. "compilation_config.mode" sets one
// key of a JSON flag and leaves the others. Several values of a list flag are
// separated by blanks. Where the flag has that value already the copy is equal.
func (c *Config) With(flag, value string) *Config { return c.set(flag, value, false) }

// Override is [Config.With], but leaves the config file alone: what stands there
// is overridden on the command line. A caller who must not write the user's file
// wants this. Sub-keys of a JSON flag in the file ("compilation-config.mode: 3")
// cannot be overridden by a whole object; they go on to win.
func (c *Config) Override(flag, value string) *Config { return c.set(flag, value, true) }

func (c *Config) set(flag, value string, keepFile bool) *Config {
	name := canonical(flag)
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
	if off := truth(value); kindOf(name) == kindTrue && off.known && !off.value {
		return c.Without(name)
	}
	d := c.withoutKeys(name, keepFile) // sub-keys would win over a whole object
	if it := d.last(name); it != nil {
		if it.source == Cmdline {
			return d.replace(*it, value)
		}
		if !keepFile && it.node >= 0 && d.fileCan(it, value) {
			if f, err := d.file.set(it.node, value); err == nil {
				d.file = f
				d.scan()
				return d
			}
		}
	}
	return d.appendFlag(name, value)
}

// fileCan tells whether the config file can hold the value: a list of several
// cannot be spelled as one scalar, and a false there has no effect.
func (c *Config) fileCan(it *item, value string) bool {
	if kindOf(it.name) == kindBool || kindOf(it.name) == kindUnknown {
		if t := truth(value); t.known && !t.value {
			return false
		}
	}
	return kindOf(it.name) != kindList || !strings.Contains(value, " ")
}

// Without returns a copy in which a flag is not given at all, neither on the
// command line nor in the config file, so that vLLM's default holds.
func (c *Config) Without(flag string) *Config {
	name := canonical(flag)
	d := c.clone()
	if head, rest, dotted := strings.Cut(name, "."); dotted {
		return d.dropKey(head, strings.Split(rest, "."))
	}
	for {
		i := slices.IndexFunc(d.items, func(it item) bool { return it.matches(name) && (it.source == Cmdline || it.node >= 0) })
		if i < 0 {
			return d
		}
		d = d.drop(d.items[i])
	}
}

func (it *item) matches(name string) bool {
	return it.name == name || (name == "model" && it.name == "" && !it.ignored)
}

// drop removes one item from where it stands.
func (c *Config) drop(it item) *Config {
	d := c.clone()
	if it.source == Cmdline {
		d.cmd = c.cmd.edited(func(ws []word) []word { return slices.Delete(ws, it.at, it.at+it.n) })
		d.scan()
		return d
	}
	f, err := c.file.remove(it.node)
	if err != nil {
		// A file that parsed and cannot be written without one key keeps it;
		// the item is dropped from view so that callers end.
		d.items = slices.DeleteFunc(d.items, func(o item) bool { return o.source == ConfigFile && o.node == it.node })
		return d
	}
	d.file = f
	d.scan()
	return d
}

// withoutKeys returns a copy without the sub-keys of a JSON flag.
func (c *Config) withoutKeys(name string, keepFile bool) *Config {
	d := c.clone()
	for {
		i := slices.IndexFunc(d.items, func(it item) bool {
			return it.name == name && len(it.path) > 0 && (it.source == Cmdline || !keepFile && it.node >= 0)
		})
		if i < 0 {
			return d
		}
		d = d.drop(d.items[i])
	}
}

// replace changes the value of an item of the command line.
func (c *Config) replace(it item, value string) *Config {
	bare := it.negated || len(it.values) == 0
	if bare && truth(value).known {
		return c.splice(it, []string{boolSpelling(it, value)})
	}
	values := []string{value}
	if kindOf(it.name) == kindList {
		values = strings.Fields(value)
	}
	return c.splice(it, spell(it.spelled, values, it.inline && len(values) == 1))
}

// boolSpelling is the flag's name, or its opposite, in the spelling found.
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

// spell lays a flag and its values out as words.
func spell(flag string, values []string, inline bool) []string {
	if inline {
		return []string{flag + "=" + values[0]}
	}
	return append([]string{flag}, values...)
}

// splice puts new words in the place of an item's.
func (c *Config) splice(it item, with []string) *Config {
	d := c.clone()
	d.cmd = c.cmd.edited(func(ws []word) []word {
		return slices.Concat(ws[:it.at], c.newWords(with, ws[it.at].gap), ws[it.at+it.n:])
	})
	d.scan()
	return d
}

// newWords makes words for the innermost command, quoted where it is a script.
func (c *Config) newWords(texts []string, gap string) []word {
	ws := words(texts)
	for i := range ws {
		ws[i].gap = " "
		if c.cmd.launch().shell {
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
	flag := "--" + c.style(name)
	values := []string{value}
	switch k, t := kindOf(name), truth(value); {
	case (k == kindBool || k == kindUnknown && looksBool(name)) && t.known && !t.value:
		flag, values = "--"+c.style("no_"+name), nil
	case (k == kindBool || k == kindTrue || k == kindUnknown && looksBool(name)) && t.known:
		values = nil
	case k == kindList:
		values = strings.Fields(value)
	}
	inline := len(values) == 1 && c.inlineStyle()
	return c.insert(spell(flag, values, inline))
}

// insert puts words behind the last flag. A lone "--" ends the flags, and a
// sub-key without a value would swallow what follows, so they go before those.
func (c *Config) insert(texts []string) *Config {
	d := c.clone()
	l := c.cmd.launch()
	d.cmd = c.cmd.edited(func(ws []word) []word {
		at := len(ws)
		if i := c.terminator(ws, l.args); i >= 0 {
			at = i
		} else if last := len(c.items) - 1; last >= 0 && c.items[last].dangling() {
			at = c.items[last].at
		}
		return slices.Insert(ws, at, c.newWords(texts, "")...)
	})
	d.scan()
	return d
}

// terminator is the position of the lone "--" that ends the flags, -1 without
// one. A sub-key takes the next word as its value, even that one.
func (c *Config) terminator(ws []word, from int) int {
	for i := from; i < len(ws); i++ {
		taken := func(it item) bool {
			return it.source == Cmdline && (it.name != "" || len(it.path) > 0) && it.at <= i && i < it.at+it.n
		}
		if ws[i].text == "--" && !slices.ContainsFunc(c.items, taken) {
			return i
		}
	}
	return -1
}

// dangling tells whether the item takes the next word, whatever it is, and there
// is none.
func (it *item) dangling() bool {
	return it.source == Cmdline && len(it.path) > 0 && !it.inline && it.n == 1
}

// style spells a name as most flags of the command line are spelled: with
// dashes, unless underscores are seen and dashes are not.
func (c *Config) style(name string) string {
	underscored, dashed := 0, 0
	for _, it := range c.items {
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

// inlineStyle tells whether most values stand after an equals sign.
func (c *Config) inlineStyle() bool {
	n := 0
	for _, it := range c.items {
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

// setModel changes the model where it stands.
func (c *Config) setModel(value string, keepFile bool) *Config {
	for _, it := range c.items {
		if it.name == "" && !it.ignored {
			return c.splice(it, []string{value})
		}
	}
	it := c.last("model")
	switch {
	case it != nil && it.source == Cmdline:
		return c.replace(*it, value)
	case it != nil && it.node >= 0 && !keepFile:
		if f, err := c.file.set(it.node, value); err == nil {
			d := c.clone()
			d.file = f
			d.scan()
			return d
		}
	}
	if l := c.cmd.launch(); l.form == formServe {
		d := c.clone()
		d.cmd = c.cmd.edited(func(ws []word) []word { return slices.Insert(ws, l.args, c.newWords([]string{value}, "")...) })
		d.scan()
		return d
	}
	return c.appendFlag("model", value)
}

// setKey sets one key of a JSON flag. Sub-keys given apart and a whole object do
// not mix (the sub-keys win, all of them), so the key goes where the others are.
func (c *Config) setKey(head string, path []string, value string, keepFile bool) *Config {
	spelledKey := strings.Join(path, ".")
	for _, it := range slices.Backward(c.items) {
		if it.name == head && strings.Join(it.path, ".") == spelledKey && it.source == Cmdline && !it.plus {
			return c.splice(it, spell(it.spelled, []string{value}, it.inline))
		}
	}
	whole := c.last(head)
	if _, _, apart := c.merged(head); apart || whole == nil || !whole.present() {
		return c.insert(spell("--"+c.style(head)+"."+spelledKey, []string{value}, true))
	}
	object, ok := decodeJSON(strings.Join(whole.meaning(), " "))
	root, isMap := object.(map[string]any)
	if !ok || !isMap {
		return c.insert(spell("--"+c.style(head)+"."+spelledKey, []string{value}, true))
	}
	mergeInto(root, path, dottedValue(value, false))
	return c.set(head, encodeJSON(root), keepFile)
}

// dropKey removes one key of a JSON flag.
func (c *Config) dropKey(head string, path []string) *Config {
	spelledKey := strings.Join(path, ".")
	d := c
	for {
		i := slices.IndexFunc(d.items, func(it item) bool {
			return it.name == head && strings.Join(it.path, ".") == spelledKey && (it.source == Cmdline || it.node >= 0)
		})
		if i < 0 {
			break
		}
		d = d.drop(d.items[i])
	}
	whole := d.last(head)
	if whole == nil || !whole.present() {
		return d
	}
	object, ok := decodeJSON(strings.Join(whole.meaning(), " "))
	root, isMap := object.(map[string]any)
	if !ok || !isMap {
		return d
	}
	at := root
	for _, key := range path[:len(path)-1] {
		if at, isMap = at[key].(map[string]any); !isMap {
			return d
		}
	}
	if _, found := at[path[len(path)-1]]; !found {
		return d
	}
	delete(at, path[len(path)-1])
	return d.set(head, encodeJSON(root), false)
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
	d.env = cloneEnv(c.env)
	return &d
}

// Argv is the argument vector that starts the server, wrappers included. It may
// hold secrets.
func (c *Config) Argv() []string { return c.cmd.argv() }

// Shell is [Config.Argv] as one line for a POSIX shell. It may hold secrets.
func (c *Config) Shell() string {
	if c.typed {
		return c.cmd.child.text()
	}
	quoted := c.cmd.argv()
	for i, arg := range quoted {
		quoted[i] = Quote(arg)
	}
	return strings.Join(quoted, " ")
}

// File is the text of the config file, edits included; nil without one. It may
// hold secrets.
func (c *Config) File() []byte { return bytes.Clone(c.file.text) }
