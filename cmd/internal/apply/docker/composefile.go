package docker

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// commandOf returns command: of a service in a Compose file; nil if the file does not set it.
func commandOf(text []byte, service string) (*yaml.Node, error) {
	var file struct {
		Services map[string]struct{ Command yaml.Node }
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	command := file.Services[service].Command
	if command.IsZero() || command.Tag == "!!null" {
		return nil, nil
	}
	return &command, nil
}

// withChanges returns a Compose file in which command: of a service has changes. Everything else stays byte for
// byte. The container gets the words of the command behind those of its entrypoint.
func withChanges(text []byte, service string, entrypoint []string, changes []engine.Change) ([]byte, error) {
	for _, change := range changes {
		command, err := commandOf(text, service)
		switch {
		case err != nil:
			return nil, err
		case command == nil:
			return nil, errors.New("it has no command: there")
		case command.Kind == yaml.SequenceNode:
			text, err = editList(text, command, service, entrypoint, change)
		case command.Kind == yaml.ScalarNode:
			text, err = editScript(text, command, entrypoint, change)
		default:
			err = errors.New("its command: is an alias of another part of the file")
		}
		if err != nil {
			return nil, err
		}
	}
	return text, nil
}

// values returns the items of a list of scalars.
func values(list *yaml.Node) ([]string, error) {
	out := make([]string, len(list.Content))
	for i, item := range list.Content {
		if item.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d is not a word of a command line", item.Line)
		}
		out[i] = item.Value
	}
	return out, nil
}

// editList makes a change in a list of words.
func editList(text []byte, list *yaml.Node, service string, entrypoint []string, change engine.Change) ([]byte, error) {
	had, err := values(list)
	if err != nil {
		return nil, err
	}
	before := launcher.Launch{Argv: slices.Concat(entrypoint, had)}
	after, err := before.With([]engine.Change{change}, false)
	if err != nil {
		return nil, err
	}
	n := len(entrypoint)
	if len(after.Argv) < n || !slices.Equal(after.Argv[:n], entrypoint) {
		return nil, fmt.Errorf("%s is in the container's entrypoint", change.Flag)
	}
	want := after.Argv[n:]
	text, err = replaceItems(text, list, had, want)
	if err != nil {
		return nil, err
	}
	now, err := commandOf(text, service)
	if err != nil || now == nil {
		return nil, fmt.Errorf("its command: on line %d cannot be edited", list.Line)
	}
	if has, err := values(now); err != nil || !slices.Equal(has, want) {
		return nil, fmt.Errorf("its command: on line %d cannot be edited", list.Line)
	}
	return text, nil
}

// replaceItems replaces the items of a list that differ, in the style of those beside them.
func replaceItems(text []byte, list *yaml.Node, had, want []string) ([]byte, error) {
	first := 0
	for first < min(len(had), len(want)) && had[first] == want[first] {
		first++
	}
	end := len(had)
	for more := len(want); end > first && more > first && had[end-1] == want[more-1]; more-- {
		end--
	}
	with := want[first : len(want)-(len(had)-end)]
	flow := list.Style&yaml.FlowStyle != 0
	for i := max(end-1, first-1, 0); i >= first-1 && i >= 0 && i < len(had); i-- {
		item := list.Content[i]
		from, to, ok := launch.ScalarRange(text, item)
		if !ok {
			return nil, fmt.Errorf("line %d cannot be edited: its word is not on one line", item.Line)
		}
		line := bytes.LastIndexByte(text[:from], '\n') + 1
		rest := len(text)
		if n := bytes.IndexByte(text[to:], '\n'); n >= 0 {
			rest = to + n
		}
		var more []string // words that follow this one
		if i == max(end-1, first-1) {
			more = with[min(i+1-first, len(with)):]
		}
		var added strings.Builder
		for _, word := range more {
			if flow {
				added.WriteString(", " + spelled(item, word))
			} else {
				added.WriteString("\n" + string(text[line:from]) + spelled(item, word))
			}
		}
		at := rest
		if flow {
			at = to
		}
		switch {
		case i < first: // the word before the first that differs
			text = slices.Concat(text[:at], []byte(added.String()), text[at:])
		case i-first < len(with):
			text = slices.Concat(text[:from], []byte(spelled(item, with[i-first])), text[to:at], []byte(added.String()), text[at:])
		case flow:
			_, before, ok := launch.ScalarRange(text, list.Content[max(i-1, 0)])
			if !ok || i == 0 {
				return nil, fmt.Errorf("the first word of its command: on line %d cannot be removed", item.Line)
			}
			text = slices.Concat(text[:before], text[to:])
		default:
			text = slices.Concat(text[:line], text[min(rest+1, len(text)):])
		}
	}
	return text, nil
}

// spelled returns a word in the style of a scalar, and in quotes where YAML would not read it as text.
func spelled(like *yaml.Node, word string) string {
	n := yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: word, Style: like.Style}
	if like.Style == 0 && like.Tag != "!!str" {
		n.Tag = "" // a number stays one
	}
	text, err := yaml.Marshal(&n)
	if err != nil {
		return word
	}
	return strings.TrimSuffix(string(text), "\n")
}

// editScript makes a change in a text that Compose splits into words as a shell does.
func editScript(text []byte, script *yaml.Node, entrypoint []string, change engine.Change) ([]byte, error) {
	edit := func(words string) (string, error) {
		const shell = 2 // words before the script
		prefix := ""
		for _, word := range entrypoint {
			prefix += launch.Quote(word) + " "
		}
		before := launcher.Launch{Argv: []string{"sh", "-c", prefix + words}}
		after, err := before.With([]engine.Change{change}, false)
		if err != nil {
			return "", err
		}
		words, ok := strings.CutPrefix(after.Argv[shell], prefix)
		if !ok {
			return "", fmt.Errorf("%s is in the container's entrypoint", change.Flag)
		}
		return words, nil
	}
	if script.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
		from, to, ok := launch.ScalarRange(text, script)
		if !ok {
			return nil, fmt.Errorf("its command: on line %d cannot be edited: it goes on in another line", script.Line)
		}
		words, err := edit(script.Value)
		if err != nil {
			return nil, err
		}
		return slices.Concat(text[:from], []byte(spelled(script, words)), text[to:]), nil
	}
	from, to := block(text, script.Line)
	lines := string(text[from:to])
	if strings.Contains(lines, "\t") {
		return nil, fmt.Errorf("its command: on line %d cannot be edited: it has tabs", script.Line)
	}
	// To a shell the end of a line would end the command.
	words, err := edit(strings.ReplaceAll(lines, "\n", "\t"))
	if err != nil {
		return nil, err
	}
	return slices.Concat(text[:from], []byte(strings.ReplaceAll(words, "\t", "\n")), text[to:]), nil
}

// block returns where the lines below a line are that are indented as the first of them or more, without blanks
// before and after them.
func block(text []byte, header int) (from, to int) {
	indent := -1
	at := 0
	for number := 1; at < len(text); number++ {
		end := len(text)
		if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
			end = at + n + 1
		}
		line := text[at:end]
		words := bytes.TrimSpace(line)
		switch blanks := bytes.IndexFunc(line, func(r rune) bool { return r != ' ' }); {
		case number <= header || len(words) == 0:
		case indent < 0:
			indent, from, to = blanks, at+blanks, at+blanks+len(words)
		case blanks < indent:
			return from, to
		default:
			to = at + blanks + len(words)
		}
		at = end
	}
	return from, to
}
