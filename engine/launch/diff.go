package launch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Change is one flag, or environment variable, in which two configurations
// differ. Secrets are [Redacted] on both sides.
type Change struct {
	Name     string // canonical: max_num_seqs; a variable as it is spelled: VLLM_USE_V1
	From, To string // "" where it is not set
	Variable bool   // an environment variable
}

// String formats the change: "--max-num-seqs 256 → 512".
func (c Change) String() string {
	name := c.Name
	if !c.Variable {
		head, rest, _ := strings.Cut(name, ".")
		name = strings.TrimSuffix("--"+dashes(head)+"."+rest, ".")
	}
	return fmt.Sprintf("%s %s → %s", name, cmp.Or(c.From, "unset"), cmp.Or(c.To, "unset"))
}

// Diff lists the settings in which a and b differ: flags, then variables, each ordered by
// name. JSON objects are compared by key. Spelling, order and the place of a flag do not
// matter.
func Diff(a, b *Config) []Change {
	var changes []Change
	for _, name := range union(a.items.names(), b.items.names()) {
		va, _, _ := a.values(name)
		vb, _, _ := b.values(name)
		if slices.Equal(va, vb) {
			continue
		}
		from, _, _ := a.Value(name)
		to, _, _ := b.Value(name)
		if oldObject, ok := object(from); ok {
			if newObject, ok := object(to); ok {
				changes = append(changes, diffObjects(name, oldObject, newObject)...)
				continue
			}
		}
		changes = append(changes, Change{Name: name, From: from, To: to})
	}
	for _, name := range union(slices.Collect(maps.Keys(a.env)), slices.Collect(maps.Keys(b.env))) {
		if a.env[name] == b.env[name] {
			continue
		}
		from, _ := a.Variable(name)
		to, _ := b.Variable(name)
		changes = append(changes, Change{Name: name, From: from, To: to, Variable: true})
	}
	return changes
}

// object parses a JSON object; ok is false for any other text.
func object(text string) (map[string]any, bool) {
	v, ok := decodeJSON(text)
	m, isMap := v.(map[string]any)
	return m, ok && isMap
}

func diffObjects(name string, a, b map[string]any) []Change {
	var changes []Change
	for _, key := range union(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b))) {
		va, inA := a[key]
		vb, inB := b[key]
		ma, isMapA := va.(map[string]any)
		mb, isMapB := vb.(map[string]any)
		if isMapA && isMapB {
			changes = append(changes, diffObjects(name+"."+key, ma, mb)...)
			continue
		}
		from, to := text(va, inA), text(vb, inB)
		if from != to {
			changes = append(changes, Change{Name: name + "." + key, From: from, To: to})
		}
	}
	return changes
}

// text formats a JSON value as the value of a sub-key.
func text(v any, present bool) string {
	if s, ok := v.(string); ok {
		return s
	}
	if !present {
		return ""
	}
	return encodeJSON(v)
}

// names returns the canonical names of the given flags.
func (list items) names() []string {
	var names []string
	for _, it := range list {
		switch {
		case it.ignored:
		case it.name == "":
			names = append(names, "model")
		default:
			names = append(names, it.name)
		}
	}
	return names
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// Environ converts NAME=value strings, as in /proc and os.Environ, to a map. The last value
// of a name counts.
func Environ(list []string) map[string]string {
	env := make(map[string]string, len(list))
	for _, entry := range list {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
			env[name] = value
		}
	}
	return env
}
