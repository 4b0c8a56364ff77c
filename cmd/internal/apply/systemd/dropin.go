package systemd

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
)

// First lines of drop-in files.
const (
	trialHeading = "# Written by rooftop: a change on trial. A restart of the machine removes it.\n"
	keptHeading  = "# Written by rooftop: a change that was measured and kept. Without this file the unit is as before.\n"
)

// dropIn returns the text of a drop-in file that makes the unit start a launch; nil for nil. The command
// line replaces that of a kept file, and variables add to its variables.
func (u *Unit) dropIn(target *launcher.Launch) []byte {
	if target == nil {
		return nil
	}
	var variables []string
	if text, err := os.ReadFile(u.unit.Kept); err == nil {
		for line := range strings.Lines(string(text)) {
			if variable(line) != "" {
				variables = append(variables, line)
			}
		}
	}
	set := func(name, line string) {
		variables = append(slices.DeleteFunc(variables, func(earlier string) bool { return variable(earlier) == name }), line)
	}
	for _, entry := range target.Env {
		if name, _, _ := strings.Cut(entry, "="); !slices.Contains(u.kept.Env, entry) {
			set(name, "Environment="+quote(entry)+"\n")
		}
	}
	for _, entry := range u.kept.Env {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.ContainsFunc(target.Env, func(e string) bool { return strings.HasPrefix(e, name+"=") }) {
			set(name, "UnsetEnvironment="+name+"\n")
		}
	}
	var words []string
	for _, word := range literal(target.Argv, u.unit.Prefix) {
		words = append(words, quote(word))
	}
	return fmt.Appendf(nil, "%s[Service]\nExecStart=\nExecStart=%s%s\n%s", trialHeading, u.unit.Prefix, strings.Join(words, " "), strings.Join(variables, ""))
}

// variable returns the name of the variable that a line of a drop-in file sets or unsets; "" for another
// line.
func variable(line string) string {
	if entry, ok := strings.CutPrefix(line, "Environment="); ok {
		name, _, _ := strings.Cut(strings.Trim(entry, "\"\n"), "=")
		return name
	}
	name, _ := strings.CutPrefix(line, "UnsetEnvironment=")
	if name == line {
		return ""
	}
	return strings.TrimSpace(name)
}

// literal returns words of ExecStart= in which every $ stands for itself. With the prefix ":" systemd
// expands no variables.
func literal(words []string, prefix string) []string {
	out := slices.Clone(words)
	for i := range out {
		if !strings.Contains(prefix, ":") {
			out[i] = strings.ReplaceAll(out[i], "$", "$$")
		}
	}
	return out
}

// quote returns a word as systemd.syntax(7) asks for it: in quotes if it has more than plain characters,
// and with % doubled, because systemd expands specifiers.
func quote(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:,=@$%"
	text := strings.ReplaceAll(word, "%", "%%")
	if word != "" && strings.Trim(word, plain) == "" {
		return text
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
