package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

func flagNames(f *pflag.FlagSet) []string {
	var names []string
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "help" {
			names = append(names, flag.Name)
		}
	})
	return names
}

// call runs a command line with variables as NAME=VALUE.
func call(t *testing.T, env []string, args ...string) (stdout, stderr string, code cli.ExitCode) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(cli.World{Args: args, Stdout: &out, Stderr: &errs, Env: func(name string) (string, bool) {
		for _, e := range env {
			if value, ok := strings.CutPrefix(e, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}})
	return out.String(), errs.String(), code
}

// everyCommand calls a function for each command, including the root.
func everyCommand(t *testing.T, do func(t *testing.T, c *cobra.Command)) {
	t.Helper()
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		t.Run(c.CommandPath(), func(t *testing.T) { do(t, c) })
		for _, below := range c.Commands() {
			walk(below)
		}
	}
	walk(newRoot(&cli.World{Env: variables()}))
}

func TestEveryHelpFits(t *testing.T) {
	everyCommand(t, func(t *testing.T, c *cobra.Command) {
		words := strings.Fields(c.CommandPath())[1:]
		page, _, code := call(t, nil, append(words, "--help")...)
		if code != cli.ExitDone || page == "" {
			t.Fatalf("exit code %d, %d bytes", code, len(page))
		}
		for i, line := range strings.Split(page, "\n") {
			if n := utf8.RuneCountInString(line); n > cli.HelpWidth {
				t.Errorf("line %d is %d cells wide: %s", i+1, n, line)
			}
		}
	})
}

// Examples are valid usage: their commands, flags, arguments and names exist.
func TestExamplesAreTaken(t *testing.T) {
	everyCommand(t, func(t *testing.T, c *cobra.Command) {
		for line := range strings.Lines(strings.ReplaceAll(c.Example, "\\\n", " ")) {
			for _, words := range commandsOf(line) {
				if words[0] == "rooftop" {
					exampleIsTaken(t, withDefaultCommand(words[1:]))
				}
			}
		}
	})
}

func exampleIsTaken(t *testing.T, args []string) {
	t.Helper()
	w := &cli.World{Env: variables()}
	c, rest, err := newRoot(w).Find(args)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	if c.DisableFlagParsing { // flags of vLLM, for the simulated server
		words, _, err := withScenario(rest)
		if err == nil {
			_, err = simSettings(w, words)
		}
		if err != nil {
			t.Errorf("%q: %v", args, err)
		}
		return
	}
	if err := c.ParseFlags(rest); err != nil {
		t.Errorf("%q: %v", args, err)
	}
	if err := c.ValidateArgs(c.Flags().Args()); err != nil {
		t.Errorf("%q: %v", args, err)
	}
	names := []string{}
	if f := c.Flags().Lookup("scenario"); f != nil {
		names = append(names, f.Value.String())
	}
	switch path := strings.TrimPrefix(c.CommandPath(), "rooftop "); path {
	case "ceiling", "explain", "catalog show", "catalog list": // touch nothing
		if _, stderr, code := call(t, nil, args...); code != cli.ExitDone {
			t.Errorf("%q: exit code %d: %s", args, code, stderr)
		}
	}
	for _, name := range names {
		if _, err := settings.Select(name); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// commandsOf splits a line like a shell: the words of every command, without redirections.
func commandsOf(line string) [][]string {
	var out [][]string
	var words []string
	var word strings.Builder
	quote, begun := rune(0), false
	end := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	for _, r := range strings.TrimSpace(line) + ";" {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && strings.ContainsRune(";|>", r):
			end()
			if len(words) > 0 {
				out = append(out, words)
			}
			words = nil
		case quote == 0 && r == ' ':
			end()
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	return out
}

// TestEveryFlagIsInAGroup checks that grouped help includes all flags.
func TestEveryFlagIsInAGroup(t *testing.T) {
	w := &cli.World{Env: func(string) (string, bool) { return "", false }}
	for _, c := range newRoot(w).Commands() {
		if !slices.Contains([]string{"tune", "diagnose", "doctor", "replay", "ceiling", "demo"}, c.Name()) {
			continue
		}
		page, _, _ := call(t, nil, c.Name(), "--help")
		_, listed, _ := strings.Cut(page, "USAGE")
		for _, name := range flagNames(c.Flags()) {
			if !strings.Contains(listed, " --"+name+" ") {
				t.Errorf("%s --%s is not in its help", c.Name(), name)
			}
		}
	}
}

func TestShellsCompleteValues(t *testing.T) {
	for _, c := range []struct{ command, flag, want string }{
		{"tune", "--theme", "auto\ndark\nlight\n"},
		{"diagnose", "--color", "auto\nalways\nnever\n"},
		{"replay", "--ceiling", "physical\nclassic\n"},
	} {
		out, _, code := call(t, nil, "__complete", c.command, c.flag, "")
		if code != cli.ExitDone || !strings.HasPrefix(out, c.want) {
			t.Errorf("%s %s: exit code %d, completes\n%s", c.command, c.flag, code, out)
		}
	}
}

// must ends a test that got an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return text
}
