package engine

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
)

// Change is a new value for one setting of a launch. From is "" if the setting was not
// given. To is "" if it is removed, which is also how a switch is turned off whose default
// is off. The values of switches are "on" (the bare flag) and "off" (its --no- form).
type Change struct {
	Flag string `json:"flag"`
	From string `json:"from"`
	To   string `json:"to"`
}

// String returns the change as text: "--max-num-seqs 4 → 32", "--enforce-eager left out".
func (c Change) String() string {
	switch {
	case c.To == "on" && (c.From == "" || c.From == "off"):
		return c.Flag + " on"
	case c.To == "off" && (c.From == "" || c.From == "on"):
		return c.Flag + " off"
	case c.To == "" && c.From == "on":
		return c.Flag + " left out"
	case c.To == "" && c.From == "off":
		return "--no-" + strings.TrimPrefix(c.Flag, "--") + " left out"
	case c.To == "" && c.From != "":
		return c.Flag + " " + c.From + " left out"
	}
	return c.Flag + " " + cmp.Or(c.From, "unset") + " → " + cmp.Or(c.To, "unset")
}

// JoinChanges returns the changes as one text.
func JoinChanges(changes []Change) string {
	parts := make([]string, len(changes))
	for i, c := range changes {
		parts[i] = c.String()
	}
	return strings.Join(parts, ", ")
}

// MergeChanges combines earlier changes with new ones into one change for each flag, from its
// original value to its latest.
func MergeChanges(made, changes []Change) []Change {
	out := slices.Clone(made)
	for _, c := range changes {
		if i := slices.IndexFunc(out, func(o Change) bool { return o.Flag == c.Flag }); i >= 0 {
			out[i].To = c.To
		} else {
			out = append(out, c)
		}
	}
	return out
}

// Inverse returns the change that reverts c.
func (c Change) Inverse() Change { return Change{Flag: c.Flag, From: c.To, To: c.From} }

// InverseChanges returns the changes that revert others, in the same order.
func InverseChanges(changes []Change) []Change {
	undo := make([]Change, len(changes))
	for i, c := range changes {
		undo[i] = c.Inverse()
	}
	return undo
}

// FlagName returns the flag of an argument: "max_num_seqs" becomes "--max-num-seqs".
func FlagName(name string) string {
	head, rest, dotted := strings.Cut(name, ".")
	flag := "--" + strings.ReplaceAll(head, "_", "-")
	if dotted {
		flag += "." + rest
	}
	return flag
}

// ArgumentName returns the argument that a flag sets; the inverse of [FlagName].
func ArgumentName(flag string) string {
	return strings.ReplaceAll(strings.TrimPrefix(flag, "--"), "-", "_")
}

// SettingChange returns the change of a setting ("max_num_seqs") as the change of an engine's flag; ok is
// false if the engine has no such flag.
func SettingChange(g *catalog.Engine, setting, from, to string) (c Change, ok bool) {
	name, inverted, ok := g.Argument(setting)
	if inverted { // --disable-x: given for off, left out for on
		off := map[string]string{"off": "on"}
		from, to = off[from], off[to]
	}
	return Change{Flag: FlagName(name), From: from, To: to}, ok
}

// Sets reports whether the change affects the setting that vLLM's flag sets ("--max-num-seqs").
func (c Change) Sets(flag string) bool { return c.Canonical().Flag == flag }

// Canonical returns the change of an engine's flag as the change of vLLM's flag for the same setting.
func (c Change) Canonical() Change {
	head, rest, dotted := strings.Cut(c.Flag, ".")
	if !strings.HasPrefix(c.Flag, "--") {
		return c // an environment variable, or the engine itself
	}
	setting, inverted := catalog.SettingOf(head)
	c.Flag = FlagName(setting)
	if dotted {
		c.Flag += "." + rest
	}
	if inverted {
		on := map[string]string{"on": "off", "off": "on", "": "on"}
		c.From, c.To = on[c.From], on[c.To]
	}
	return c
}

// SameValue reports whether two values of an argument are equal: 0.9 is 0.90.
func SameValue(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && x == y
}

// SameChanges reports whether a and b set the same flags to the same values.
func SameChanges(a, b []Change) bool {
	if len(a) != len(b) {
		return false
	}
	for _, c := range a {
		if !slices.ContainsFunc(b, func(o Change) bool { return o.Flag == c.Flag && SameValue(o.To, c.To) }) {
			return false
		}
	}
	return true
}
