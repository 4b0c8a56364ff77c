package launch

import (
	"slices"
	"strings"
)

// APIKey returns the key that the server asks of its clients, the first of several,
// from the command line, the config file or the environment. It is a secret.
func (c *Config) APIKey() (key string, ok bool) {
	values, _, ok := c.values("api_key")
	if !ok || len(values) == 0 || values[0] == "" {
		return "", false
	}
	return values[0], true
}

// VariableOf names the environment variable that stands for a flag that nobody
// gave: VLLM_ATTENTION_BACKEND for --attention-backend.
func VariableOf(flag string) (variable string, ok bool) {
	variable, ok = fromEnvironment[canonical(flag)]
	return variable, ok
}

// Hide returns a text, as a log's line, without the secrets of the configuration
// and without what looks like one.
func (c *Config) Hide(text string) string {
	text = hideInText(text)
	for _, v := range c.secrets() {
		text = strings.ReplaceAll(text, v, Redacted)
	}
	return text
}

// Hide returns a text, as a log's line, without what looks like a secret.
func Hide(text string) string { return hideInText(text) }

// WithInline returns a copy in which the command line itself gives a variable
// another value, where it does so: `NAME=value vllm serve …`, `env NAME=value …`,
// `docker run -e NAME=value …`. ok is false where it does not, or where value is
// "", which cannot be told from a variable left out.
func (c *Config) WithInline(name, value string) (d *Config, ok bool) {
	if value == "" {
		return nil, false
	}
	cmd, ok := c.cmd.assigned(name, value)
	if !ok {
		return nil, false
	}
	d = c.clone()
	d.cmd = cmd
	if d.env == nil {
		d.env = map[string]string{}
	}
	d.env[name] = value
	d.scan()
	return d, true
}

// assigned returns a copy of a command with an assignment before its call changed;
// the innermost one wins, and so is the one to change.
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
				// An assignment is one only where its name stands without quotes.
				d.ws[i].raw = head + name + "=" + Quote(value)
			}
			return &d, true
		}
	}
	return nil, false
}

// withChild returns a copy with another script in the place of its own.
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
