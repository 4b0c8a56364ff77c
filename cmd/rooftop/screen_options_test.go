package main

import (
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
)

func TestPossible(t *testing.T) {
	for _, c := range []struct {
		name          string
		o             cli.Output
		stdin, stdout bool
		term          string
		want          bool
	}{
		{"a terminal", cli.Output{}, true, true, "xterm-256color", true},
		{"a terminal of no name", cli.Output{}, true, true, "", true},
		{"stdout is a file", cli.Output{}, true, false, "xterm", false},
		{"stdin is a pipe", cli.Output{}, false, true, "xterm", false},
		{"a dumb terminal", cli.Output{}, true, true, "dumb", false},
		{"plain", cli.Output{Plain: true}, true, true, "xterm", false},
		{"events", cli.Output{JSON: true}, true, true, "xterm", false},
	} {
		if got := possible(&c.o, c.stdin, c.stdout, c.term); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
