package engine

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
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
