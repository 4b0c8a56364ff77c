package apply

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// variable is how environment variables are spelled, and flags are not.
var variable = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)

// with returns the launch with changes made to it, each where the setting stands:
// in the environment, in the config file, or on the command line. KeepFile leaves
// the config file alone: what stands there is overridden on the command line.
func (l *Launch) with(changes []engine.Change, keepFile bool) (*Launch, error) {
	if len(changes) == 0 {
		return nil, errors.New("there is nothing to change")
	}
	c, err := l.config()
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
			c = engine.Changed(c, change)
		}
	}
	d.Argv = c.Argv()
	if text := c.File(); len(l.Files) > 0 && !bytes.Equal(text, l.Files[0].Data) {
		d.Files = slices.Clone(l.Files)
		d.Files[0].Data, d.Files[0].Time = text, time.Time{}
	}
	if err := d.has(changes); err != nil {
		return nil, err
	}
	if d.equal(l) {
		return nil, fmt.Errorf("the server runs with %s already", spelled(changes))
	}
	return &d, nil
}

// equal says that two launches start the same.
func (l *Launch) equal(m *Launch) bool {
	return slices.Equal(l.Argv, m.Argv) && slices.Equal(l.Env, m.Env) && bytes.Equal(l.configText(), m.configText())
}

// changedVariable is the environment variable in which a change has to be made.
func changedVariable(c *launch.Config, change engine.Change) (name string, ok bool) {
	if variable.MatchString(change.Flag) {
		return change.Flag, true
	}
	if _, from, given := c.Value(change.Flag); given && from == launch.Env {
		return launch.VariableOf(change.Flag)
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
		if change.From == "on" { // of a switch, to which off is the same
			return c.Override(change.Flag, "false"), nil
		}
		return nil, fmt.Errorf("%s stands in %s, which cannot be written, and a command line cannot take it out", change.Flag, c.ConfigPath())
	case "on":
		return c.Override(change.Flag, "true"), nil
	case "off":
		return c.Override(change.Flag, "false"), nil
	}
	return c.Override(change.Flag, change.To), nil
}

// setVariable returns an environment with a variable changed in its place, added at
// the end, or taken out where value is "".
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

// has makes sure that the launch reads as the changes say: a setting that a script
// works out, or that another overrides, would not take.
func (l *Launch) has(changes []engine.Change) error {
	c, err := l.config()
	if err != nil {
		return err
	}
	for _, change := range changes {
		if variable.MatchString(change.Flag) {
			continue
		}
		value, from, given := c.Value(change.Flag)
		switch {
		case change.To == "" || change.To == "off":
			if given && value != "false" && from != launch.Env {
				return fmt.Errorf("%s cannot be left out of the launch", change.Flag)
			}
		case !given || !sameSetting(value, change.To):
			return fmt.Errorf("the launch cannot be given %s", spelled([]engine.Change{change}))
		}
	}
	return nil
}

func sameSetting(value, want string) bool {
	if value == want || want == "on" && value == "true" {
		return true
	}
	x, errX := strconv.ParseFloat(value, 64)
	y, errY := strconv.ParseFloat(want, 64)
	return errX == nil && errY == nil && x == y || value == launch.Redacted
}

// spelled writes changes as one would say them.
func spelled(changes []engine.Change) string {
	words := make([]string, len(changes))
	for i, c := range changes {
		words[i] = c.String()
	}
	return strings.Join(words, ", ")
}

// recorded are changes as the journal has them.
func recorded(changes []engine.Change) []journal.Change {
	var out []journal.Change
	for _, c := range changes {
		out = append(out, journal.Change{Flag: c.Flag, From: c.From, To: c.To})
	}
	return out
}
