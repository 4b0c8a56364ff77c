package launch

import (
	"slices"
	"strings"
)

// APIKey returns the key that the server requires of its clients, the first of several,
// from the command line, the config file or the environment. It is a secret.
func (c *Config) APIKey() (key string, ok bool) {
	values, _, ok := c.values("api_key")
	if !ok || len(values) == 0 || values[0] == "" {
		return "", false
	}
	return values[0], true
}

// VariableOf returns the environment variable that sets a flag if it is not given:
// VLLM_ATTENTION_BACKEND for --attention-backend.
func (c *Config) VariableOf(flag string) (variable string, ok bool) {
	g := c.grammar()
	variable, ok = g.fromEnvironment[g.canonical(flag)]
	return variable, ok
}

// Hide returns a text, such as a log line, without the secrets of the configuration and
// without anything that looks like a secret.
func (c *Config) Hide(text string) string {
	return c.secrets().replace(hideInText(text))
}

// Hide returns a text, such as a log line, without anything that looks like a secret.
func Hide(text string) string { return hideInText(text) }

// WithInline returns a copy with another value for a variable that the command line itself
// sets: `NAME=value vllm serve …`, `env NAME=value …`, `docker run -e NAME=value …`. ok is
// false if the command line does not set it, or if value is "", which is the same as an
// absent variable.
func (c *Config) WithInline(name, value string) (d *Config, ok bool) {
	if value == "" {
		return nil, false
	}
	cmd, ok := c.cmd.assigned(name, value)
	if !ok {
		return nil, false
	}
	return c.WithVariable(name, value).with(cmd, c.file), true
}

// assigned returns a copy of a command with the innermost assignment of a variable before
// its call changed, because the innermost takes precedence.
func (c *command) assigned(name, value string) (*command, bool) {
	end := c.args
	if c.child != nil {
		if child, ok := c.child.assigned(name, value); ok {
			return c.withChild(child), true
		}
		end = c.childAt
	}
	for i := end - 1; i >= 0; i-- {
		w := c.ws[i]
		for _, head := range []string{"--env=", "-e", ""} {
			if w.opaque || !strings.HasPrefix(w.text, head+name+"=") {
				continue
			}
			d := *c
			d.ws = slices.Clone(c.ws)
			d.ws[i].text = head + name + "=" + value
			d.ws[i].raw = d.ws[i].text
			if c.shell {
				// A word is an assignment only if its name is not quoted.
				d.ws[i].raw = head + name + "=" + Quote(value)
			}
			return &d, true
		}
	}
	return nil, false
}

// withChild returns a copy with another script in place of its own.
func (c *command) withChild(child *command) *command {
	d := *c
	d.child = child
	d.ws = slices.Clone(c.ws)
	w := &d.ws[c.childAt]
	w.text = child.text()
	w.raw = w.text
	if c.shell {
		w.raw = Quote(w.text)
	}
	return &d
}
