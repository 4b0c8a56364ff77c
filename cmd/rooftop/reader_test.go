package main

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"
)

// Where stdout leads to somebody who has gone, as of `rooftop … | head -1`, a
// command ends, with nothing more to say.
func TestNobodyReads(t *testing.T) {
	for name, args := range map[string][]string{
		"a page":   {"catalog", "list"},
		"a table":  {"demo", "--list"},
		"a run":    {"tune", "--plain", "--url", "http://127.0.0.1:1"},
		"its JSON": {"tune", "--json", "--url", "http://127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			r, stdout, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer stdout.Close()
			r.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			var stderr bytes.Buffer
			code := execute(ctx, world{args: args, env: variables("HOME", t.TempDir()), stdout: stdout, stderr: &stderr})
			if code != exitNobodyReads || stderr.Len() > 0 {
				t.Errorf("exit code %d, want %d; told %q", code, exitNobodyReads, stderr.String())
			}
			if ctx.Err() != nil {
				t.Error("it did not end by itself")
			}
		})
	}
}
