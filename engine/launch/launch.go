package launch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Source is where a value was read. The strings are those of the engine's sources of
// facts.
type Source string

// Sources, by descending precedence.
const (
	Cmdline    Source = "cmdline" // a flag of the command line
	ConfigFile Source = "config"  // the file that --config names
	Env        Source = "env"     // an environment variable
)

// Redacted replaces every secret.
const Redacted = "[redacted]"

// ErrNotServer means that an argument vector does not start a server of a known engine.
var ErrNotServer = errors.New("no vLLM server command")

// Config is one launch configuration. The zero Config is empty. Methods that
// change something return a changed copy.
type Config struct {
	cmd   *command
	env   map[string]string
	file  file
	items items // of the config file, then of the command line
	typed bool  // parsed by ParseCommand from one line
}

// Parse parses a launch configuration. argv is the argument vector of the server, of a
// wrapper around it, or of a shell that runs it in a script. env is its environment and
// config the content of the file that [Config.ConfigPath] names, ignored if it names none.
// Both may be nil. The error wraps [ErrNotServer] if argv starts no server of an
// engine; Parse also fails for a config file that the engine cannot read.
func Parse(argv []string, env map[string]string, config []byte) (*Config, error) {
	cmd, ok := find(words(argv), env, 0)
	if !ok {
		return nil, fmt.Errorf("%w: %q has neither `vllm serve` nor `-m vllm.entrypoints.openai.api_server`", ErrNotServer, firstWord(argv))
	}
	all := maps.Clone(env)
	if vars := cmd.inline(); len(vars) > 0 {
		if all == nil {
			all = vars
		}
		maps.Copy(all, vars)
	}
	c := &Config{cmd: cmd, env: all}
	if config != nil && c.ConfigPath() != "" {
		f, err := parseFile(config)
		if err != nil {
			return nil, fmt.Errorf("read config file %s: %w", c.ConfigPath(), err)
		}
		c.file = f
	}
	return c.with(c.cmd, c.file), nil
}

// Likely reports whether an argument vector may start a server of an engine. It is a cheap filter before
// [Parse].
func Likely(argv []string) bool {
	line := strings.ToLower(strings.Join(argv, " "))
	return slices.ContainsFunc(grammars, func(g *grammar) bool { return strings.Contains(line, g.mark) }) ||
		strings.Contains(line, simulator) && slices.Contains(argv, "sim")
}

// ParseCommand is like [Parse] for a command line as a user types it, split into words by
// the rules of a POSIX shell. [Config.Shell] returns it as typed; [Config.Argv] runs it in
// a shell.
func ParseCommand(command string, env map[string]string, config []byte) (*Config, error) {
	c, err := Parse([]string{"sh", "-c", command}, env, config)
	if err != nil {
		return nil, err
	}
	c.typed = true
	return c, nil
}

func firstWord(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	return argv[0]
}

// items are arguments in order: those of the config file, then of the command line.
type items []item

// ConfigPath returns the file that --config names, as given; "" if there is none. vLLM reads
// the file only if the flag and its value are two words: --config=FILE is accepted and has
// no effect (0.32.0).
func (c *Config) ConfigPath() string {
	l := c.cmd.launch()
	for i := l.args; i+1 < len(l.ws); i++ {
		if l.ws[i].text == "--config" && !l.ws[i+1].opaque {
			return l.ws[i+1].text
		}
	}
	return ""
}

// Engine returns the ID of the engine that the configuration starts.
func (c *Config) Engine() string { return c.grammar().engine }

// DefaultPort returns the port at which the engine listens if its launch names none.
func (c *Config) DefaultPort() int { return c.grammar().port }

// grammar returns the grammar of the command line, vLLM's for an empty configuration.
func (c *Config) grammar() *grammar {
	if c.cmd == nil {
		return &vllm
	}
	return c.cmd.launch().g
}

// Direct reports whether argv starts vLLM itself rather than a shell or another wrapper
// around it.
func (c *Config) Direct() bool { return c.cmd.child == nil && c.cmd.direct }

// Value returns the value of a flag and where it was read; any spelling of the
// name will do ("max_num_seqs", "--max-num-seqs", "-tp"). The command line
// beats the config file, which beats the environment; the last of several wins.
// A boolean is "true" or "false", several values are joined by blanks, a JSON
// flag given by sub-keys is one JSON object, and "compilation_config.mode"
// looks into one. ok is false where the flag was not given, was given as
// "None" (vLLM's spelling of unset), or cannot be known (a script's
// expansion). The value of a secret is [Redacted].
func (c *Config) Value(flag string) (value string, from Source, ok bool) {
	name := c.grammar().canonical(flag)
	values, from, ok := c.values(name)
	if !ok {
		return "", "", false
	}
	return hideFlag(name, strings.Join(values, " ")), from, true
}

// Values returns each value of a flag that takes several (--served-model-name,
// --lora-modules), in order. See [Config.Value].
func (c *Config) Values(flag string) (values []string, from Source, ok bool) {
	name := c.grammar().canonical(flag)
	values, from, ok = c.values(name)
	values = slices.Clone(values)
	for i, v := range values {
		values[i] = hideFlag(name, v)
	}
	return values, from, ok
}

// values returns the raw values of a canonical name.
func (c *Config) values(name string) ([]string, Source, bool) {
	if name == "model" {
		return c.items.model()
	}
	head, rest, dotted := strings.Cut(name, ".")
	if dotted {
		object, from, ok := c.values(head)
		if !ok || len(object) != 1 {
			return nil, "", false
		}
		value, ok := jsonAt(object[0], strings.Split(rest, "."))
		return []string{value}, from, ok
	}
	if object, from, ok := c.items.merged(name); ok {
		return []string{object}, from, true
	}
	if it := c.items.last(name); it != nil {
		if c.grammar().kindOf(name) == kindRepeat {
			return c.items.repeated(name), it.source, true
		}
		if it.opaque || !it.present() {
			return nil, "", false
		}
		return it.meaning(), it.source, true
	}
	if variable, ok := c.grammar().fromEnvironment[name]; ok && c.env[variable] != "" {
		return []string{c.env[variable]}, Env, true
	}
	return nil, "", false
}

// repeated collects the values of a flag that appends.
func (list items) repeated(name string) []string {
	var all []string
	for _, it := range list {
		if it.name == name {
			all = append(all, it.values...)
		}
	}
	return all
}

// model is the first lone word of `vllm serve`, which beats --model.
func (list items) model() ([]string, Source, bool) {
	for _, it := range list {
		if it.name == "" && !it.ignored {
			return it.values, it.source, !it.opaque
		}
	}
	if it := list.last("model"); it != nil && it.present() && !it.opaque {
		return it.values, it.source, true
	}
	return nil, "", false
}

// last returns the item that determines a flag; nil if there is none.
func (list items) last(name string) *item {
	for i := range slices.Backward(list) {
		if it := &list[i]; it.name == name && len(it.path) == 0 && !it.ignored {
			return it
		}
	}
	return nil
}

// merged returns the JSON object that the sub-keys of a flag make up; ok is false without
// sub-keys. vLLM appends it after all other arguments, so it replaces an object that is
// given as a whole.
func (list items) merged(name string) (object string, from Source, ok bool) {
	root := map[string]any{}
	for _, it := range list {
		if it.name != name || len(it.path) == 0 || it.opaque {
			continue
		}
		mergeInto(root, it.path, dottedValue(it.values[0], it.plus))
		from, ok = it.source, true
	}
	if !ok {
		return "", "", false
	}
	return encodeJSON(root), from, true
}

// present reports whether the item sets its flag.
func (it *item) present() bool {
	if it.g.kindOf(it.name) == kindBool || it.g.kindOf(it.name) == kindTrue || it.negated {
		return true
	}
	return len(it.values) != 1 || (it.values[0] != "None" && it.values[0] != "")
}

// meaning returns the item's values as vLLM interprets them.
func (it *item) meaning() []string {
	switch {
	case it.negated:
		return []string{"false"}
	case len(it.values) == 0:
		return []string{"true"}
	case it.g.kindOf(it.name) == kindBool || it.g.kindOf(it.name) == kindTrue:
		if t := truth(it.values[0]); t.known && !t.value {
			return []string{"false"}
		}
		return []string{"true"}
	}
	return it.values
}

// Model returns the model path or Hugging Face ID that is served. ok is false if vLLM's
// default applies.
func (c *Config) Model() (model string, from Source, ok bool) { return c.Value("model") }

// ServedModelNames returns the names that the API and the metrics use; the first is the
// label model_name. Without --served-model-name it returns the model.
func (c *Config) ServedModelNames() []string {
	if names, _, ok := c.Values("served_model_name"); ok {
		return names
	}
	if model, _, ok := c.Model(); ok {
		return []string{model}
	}
	return nil
}

// Variable returns the value of an environment variable, [Redacted] if it is secret.
func (c *Config) Variable(name string) (value string, ok bool) {
	value, ok = c.env[name]
	return RedactVariable(name, value), ok
}

// Notes returns remarks about the arguments, in their order: resolved abbreviations,
// settings without effect, unknown values.
func (c *Config) Notes() []string {
	var notes []string
	l := c.cmd.launch()
	for _, it := range c.items {
		switch {
		case it.note != "":
			notes = append(notes, it.note)
		case it.opaque:
			notes = append(notes, "the value of "+it.label()+" depends on a shell expansion and is not known")
		case it.source == Cmdline && it.name == "config" && it.inline:
			notes = append(notes, "--config=FILE has no effect: vLLM reads a config file only from `--config FILE`, two words")
		}
	}
	for i := l.args; i < len(l.ws); i++ {
		if l.ws[i].opaque && !slices.ContainsFunc(c.items, func(it item) bool { return it.source == Cmdline && it.at <= i && i < it.at+it.n }) {
			notes = append(notes, "an argument depends on a shell expansion and is not known")
		}
	}
	return notes
}

func (it *item) label() string {
	if it.name == "" {
		return "the model argument"
	}
	return "--" + dashes(it.name)
}
