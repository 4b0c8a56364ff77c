package main

import (
	"bytes"
	"context"
	"os"
	"slices"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
)

// If the reader of stdout has gone, as in `rooftop … | head -1`, a command ends without further
// output.
func TestNoReader(t *testing.T) {
	for name, args := range map[string][]string{
		"a page":   {"catalog", "list"},
		"a table":  {"demo", "--list"},
		"a run":    {"tune", "--plain", "--url", "http://127.0.0.1:1"},
		"its JSON": {"tune", "--json", "--url", "http://127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			r, stdout, err := os.Pipe()
			must(t, err)
			defer stdout.Close()
			r.Close()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var stderr bytes.Buffer
			code := execute(ctx, cli.World{Args: args, Env: variables("HOME", t.TempDir()), Stdout: stdout, Stderr: &stderr})
			if code != cli.ExitBrokenPipe || stderr.Len() > 0 {
				t.Errorf("exit code %d, want %d; told %q", code, cli.ExitBrokenPipe, stderr.String())
			}
			if ctx.Err() != nil {
				t.Error("it did not end by itself")
			}
		})
	}
}

func variables(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		i := slices.Index(pairs, name)
		if i < 0 || i%2 == 1 {
			return "", false
		}
		return pairs[i+1], true
	}
}
