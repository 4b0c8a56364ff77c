package launch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Source says where a value was read. The strings are those of the engine's
// sources of facts.
type Source string

// Sources, the strongest first.
const (
	Cmdline    Source = "cmdline" // a flag of the command line
	ConfigFile Source = "config"  // the file that --config names
	Env        Source = "env"     // an environment variable
)

// Redacted stands wherever a secret would.
const Redacted = "[redacted]"

// ErrNotVLLM says that an argument vector does not start a vLLM server.
var ErrNotVLLM = errors.New("no vLLM server command")

// Config is one launch configuration. The zero Config is empty. Methods that
// change something return a changed copy.
type Config struct {
	cmd   *command
	env   map[string]string
	file  file
	items []item // of the config file, then of the command line
	typed bool   // from one line as a person types it
}

// Parse reads a launch configuration. argv is the argument vector of the
// server, of a wrapper around it, or of a shell that runs it in a script; env
// its environment, config the contents of the file that [Config.ConfigPath]
// names, not looked at where it names none. Both may be nil. The error wraps [ErrNotVLLM] where argv starts no
// vLLM server, and tells of a config file that vLLM could not read either.
func Parse(argv []string, env map[string]string, config []byte) (*Config, error) {
	cmd, ok := find(words(argv), env, 0)
	if !ok {
		return nil, fmt.Errorf("%w: %q has neither `vllm serve` nor `-m vllm.entrypoints.openai.api_server`", ErrNotVLLM, firstWord(argv))
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
	c.scan()
	return c, nil
}

// ParseCommand is [Parse] for a command line as a person writes it, cut into
// words as a POSIX shell would. [Config.Shell] gives it back as written; its
// [Config.Argv] runs it in a shell.
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

// scan rebuilds the items from the command line and the file.
func (c *Config) scan() {
	l := c.cmd.launch()
	cmdline := scan(l.ws, l.args, l.form)
	c.items = slices.Concat(c.file.items(l.form), cmdline)
}

// ConfigPath returns the file that --config names, as spelled; "" without one.
// vLLM reads the file only where the flag and its value are two words:
// --config=FILE is accepted and has no effect (0.32.0).
func (c *Config) ConfigPath() string {
	l := c.cmd.launch()
	for i := l.args; i+1 < len(l.ws); i++ {
		if l.ws[i].text == "--config" && !l.ws[i+1].opaque {
			return l.ws[i+1].text
		}
	}
	return ""
}

// Direct tells whether the program that argv starts is vLLM itself, and not a
// shell or another wrapper around it.
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
	name := canonical(flag)
	values, from, ok := c.values(name)
	if !ok {
		return "", "", false
	}
	joined := strings.Join(values, " ")
	if secretName(name, joined) {
		return Redacted, from, true
	}
	return hideInValue(joined), from, true
}

// Values returns each value of a flag that takes several (--served-model-name,
// --lora-modules), in order. See [Config.Value].
func (c *Config) Values(flag string) (values []string, from Source, ok bool) {
	name := canonical(flag)
	values, from, ok = c.values(name)
	values = slices.Clone(values)
	for i, v := range values {
		if secretName(name, v) {
			values[i] = Redacted
		} else {
			values[i] = hideInValue(v)
		}
	}
	return values, from, ok
}

// values returns the raw values of a canonical name.
func (c *Config) values(name string) ([]string, Source, bool) {
	if name == "model" {
		return c.model()
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
	if object, from, ok := c.merged(name); ok {
		return []string{object}, from, true
	}
	if it := c.last(name); it != nil {
		if kindOf(name) == kindRepeat {
			return c.repeated(name), it.source, true
		}
		if it.opaque || !it.present() {
			return nil, "", false
		}
		return it.meaning(), it.source, true
	}
	if variable, ok := fromEnvironment[name]; ok && c.env[variable] != "" {
		return []string{c.env[variable]}, Env, true
	}
	return nil, "", false
}

// repeated collects the values of a flag that appends.
func (c *Config) repeated(name string) []string {
	var all []string
	for _, it := range c.items {
		if it.name == name {
			all = append(all, it.values...)
		}
	}
	return all
}

// model is the first lone word of `vllm serve`, which beats --model.
func (c *Config) model() ([]string, Source, bool) {
	for _, it := range c.items {
		if it.name == "" && !it.ignored {
			return it.values, it.source, !it.opaque
		}
	}
	if it := c.last("model"); it != nil && it.present() && !it.opaque {
		return it.values, it.source, true
	}
	return nil, "", false
}

// last is the item that decides a flag; nil where there is none.
func (c *Config) last(name string) *item {
	for i := len(c.items) - 1; i >= 0; i-- {
		if it := &c.items[i]; it.name == name && len(it.path) == 0 && !it.ignored {
			return it
		}
	}
	return nil
}

// merged is the JSON object that sub-keys make up. vLLM appends it behind all
// other arguments, so that it replaces a whole object given otherwise. ok is
// false without sub-keys.
func (c *Config) merged(name string) (object string, from Source, ok bool) {
	root := map[string]any{}
	for _, it := range c.items {
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

// present tells whether the item sets its flag.
func (it *item) present() bool {
	if kindOf(it.name) == kindBool || kindOf(it.name) == kindTrue || it.negated {
		return true
	}
	return len(it.values) != 1 || (it.values[0] != "None" && it.values[0] != "")
}

// meaning is the item's values as the flag takes them.
func (it *item) meaning() []string {
	switch {
	case it.negated:
		return []string{"false"}
	case len(it.values) == 0:
		return []string{"true"}
	case kindOf(it.name) == kindBool || kindOf(it.name) == kindTrue:
		if t := truth(it.values[0]); t.known && !t.value {
			return []string{"false"}
		}
		return []string{"true"}
	}
	return it.values
}

// Model returns the model path or Hugging Face id that is served; vLLM has a
// default of its own without one.
func (c *Config) Model() (model string, from Source, ok bool) { return c.Value("model") }

// ServedModelNames returns the names that the API and the metrics use: the
// first is the label model_name. Without --served-model-name it is the model.
func (c *Config) ServedModelNames() []string {
	if names, _, ok := c.Values("served_model_name"); ok {
		return names
	}
	if model, _, ok := c.Model(); ok {
		return []string{model}
	}
	return nil
}

// Variable returns an environment variable; [Redacted] for a secret one.
func (c *Config) Variable(name string) (value string, ok bool) {
	value, ok = c.env[name]
	if ok && value != "" && secretVariable(name) {
		return Redacted, true
	}
	return hideInValue(value), ok
}

// Notes lists what a reader of the values should know, in the order of the
// arguments: abbreviations that were resolved, settings without effect, values
// that could not be known.
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
