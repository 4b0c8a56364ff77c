package launcher

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// Variable matches names of environment variables, and no names of flags.
var Variable = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)

// With returns the launch with changes made, each in the place of the setting: the
// environment, the config file or the command line. With keepFile, settings of the config
// file are overridden on the command line instead. It fails if a change cannot be made or
// changes nothing.
func (l *Launch) With(changes []engine.Change, keepFile bool) (*Launch, error) {
	if len(changes) == 0 {
		return nil, errors.New("there is nothing to change")
	}
	c, err := l.Config()
	if err != nil {
		return nil, err
	}
	d := *l
	for _, change := range changes {
		name, inEnv := changedVariable(c, change)
		switch {
		case inEnv:
			edited, inline := c.WithInline(name, change.To)
			if inline {
				c = edited
				break
			}
			d.Env = setVariable(d.Env, name, change.To)
			c = c.WithVariable(name, change.To)
		case keepFile && inFile(c, change.Flag):
			if c, err = overridden(c, change); err != nil {
				return nil, err
			}
		default:
			c = loop.WithChanges(c, change)
		}
	}
	d.Argv = c.Argv()
	if text := c.File(); len(l.Files) > 0 && !bytes.Equal(text, l.Files[0].Data) {
		d.Files = slices.Clone(l.Files)
		d.Files[0].Data, d.Files[0].Time = text, time.Time{}
	}
	if err := d.checkChanges(changes); err != nil {
		return nil, err
	}
	if d.Equal(l) {
		return nil, fmt.Errorf("the server already runs with %s", engine.JoinChanges(changes))
	}
	return &d, nil
}

// Equal reports whether two launches start the same server.
func (l *Launch) Equal(m *Launch) bool {
	return slices.Equal(l.Argv, m.Argv) && slices.Equal(l.Env, m.Env) && bytes.Equal(l.ConfigText(), m.ConfigText())
}

// changedVariable returns the environment variable in which a change has to be made; ok is
// false if it has to be made elsewhere.
func changedVariable(c *launch.Config, change engine.Change) (name string, ok bool) {
	if Variable.MatchString(change.Flag) {
		return change.Flag, true
	}
	if _, from, given := c.Value(change.Flag); given && from == launch.Env {
		return c.VariableOf(change.Flag)
	}
	return "", false
}

func inFile(c *launch.Config, flag string) bool {
	_, from, given := c.Value(flag)
	return given && from == launch.ConfigFile
}

func overridden(c *launch.Config, change engine.Change) (*launch.Config, error) {
	switch change.To {
	case "":
		if change.From == "on" { // unsetting a switch turns it off
			return c.Override(change.Flag, "false"), nil
		}
		return nil, fmt.Errorf("%s is set in %s, which cannot be written, and a command line cannot unset it", change.Flag, c.ConfigPath())
	case "on":
		return c.Override(change.Flag, "true"), nil
	case "off":
		return c.Override(change.Flag, "false"), nil
	}
	return c.Override(change.Flag, change.To), nil
}

// setVariable returns an environment with a variable changed in its place, added at
// the end, or removed if value is "".
func setVariable(env []string, name, value string) []string {
	out := make([]string, 0, len(env)+1)
	set := false
	for _, entry := range env {
		if !strings.HasPrefix(entry, name+"=") {
			out = append(out, entry)
			continue
		}
		if value != "" {
			out = append(out, name+"="+value)
		}
		set = true
	}
	if !set && value != "" {
		out = append(out, name+"="+value)
	}
	return out
}

// checkChanges fails if the launch does not have the settings of the changes, as when a
// script computes a setting or another one overrides it.
func (l *Launch) checkChanges(changes []engine.Change) error {
	c, err := l.Config()
	if err != nil {
		return err
	}
	for _, change := range changes {
		if Variable.MatchString(change.Flag) {
			continue
		}
		value, from, given := c.Value(change.Flag)
		switch {
		case change.To == "" || change.To == "off":
			if given && value != "false" && from != launch.Env {
				return fmt.Errorf("%s cannot be removed from the launch", change.Flag)
			}
		case !given || !sameSetting(value, change.To):
			return fmt.Errorf("the launch cannot be changed to %s", engine.JoinChanges([]engine.Change{change}))
		}
	}
	return nil
}

func sameSetting(value, want string) bool {
	return engine.SameValue(value, want) || want == "on" && value == "true" || value == launch.Redacted
}
