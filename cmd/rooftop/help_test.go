package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/pflag"
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

// call runs a command line with variables, as NAME=VALUE.
func call(t *testing.T, env []string, args ...string) (stdout, stderr string, code exitCode) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(world{args: args, stdout: &out, stderr: &errs, env: func(name string) (string, bool) {
		for _, e := range env {
			if value, ok := strings.CutPrefix(e, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}})
	return out.String(), errs.String(), code
}

func TestHelpIsGroupedAndFits(t *testing.T) {
	for name, order := range map[string][]string{
		"diagnose": {
			"WHAT IT READS", "WHAT IT NEVER DOES", "INTERRUPTING", "RECORDINGS", "ENVIRONMENT", "ROOFTOP_API_KEY", "EXIT CODES", "USAGE", "EXAMPLES",
			"THE SERVER", "--url", "--api-key-file", "THE RUN", "--duration", "--record", "WHAT CANNOT BE READ", "-m,", "OUTPUT", "--json",
		},
		"tune": {
			"WHICH SERVER", "THE SCREEN", "WITHOUT A SCREEN", "WHAT IT NEVER DOES", "EXIT CODES", "USAGE", "EXAMPLES", "THE SERVER", "--url",
			"THE RUN", "--duration", "WHAT CANNOT BE READ", "THE SCREEN", "--refresh", "FILES", "--report-dir", "OUTPUT", "--json",
		},
		"demo":    {"EXIT CODES", "USAGE", "EXAMPLES", "THE DEMONSTRATION", "--auto", "THE SCREEN", "--theme", "FILES", "OUTPUT"},
		"doctor":  {"EXIT CODES", "USAGE", "EXAMPLES", "THE SERVER", "--url", "WHAT CANNOT BE READ", "OUTPUT", "--json"},
		"replay":  {"USAGE", "EXAMPLES", "THE REPORT", "--ceiling", "THE SCREEN", "--tui", "--speed", "OUTPUT"},
		"sim":     {"MODEL", "FLAGS OF VLLM", "--max-num-seqs", "FLAGS OF THE SIMULATION", "--sim-gpu", "EXIT CODES", "USAGE", "EXAMPLES"},
		"ceiling": {"USAGE", "EXAMPLES", "HARDWARE AND MODEL", "--gpu", "LOAD", "--batch", "OUTPUT"},
	} {
		t.Run(name, func(t *testing.T) {
			page, _, code := call(t, nil, name, "--help")
			if code != exitDone {
				t.Errorf("exit code %d", code)
			}
			for i, line := range strings.Split(page, "\n") {
				if n := utf8.RuneCountInString(line); n > helpWidth {
					t.Errorf("line %d is %d cells wide: %s", i+1, n, line)
				}
			}
			rest := page
			for _, s := range order {
				_, after, ok := strings.Cut(rest, s)
				if !ok {
					t.Fatalf("%q is not there, or not after those before it:\n%s", s, page)
				}
				rest = after
			}
		})
	}
}

// TestEveryFlagIsInAGroup holds that grouped help leaves no flag out.
func TestEveryFlagIsInAGroup(t *testing.T) {
	w := &world{env: func(string) (string, bool) { return "", false }}
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
		if code != exitDone || !strings.HasPrefix(out, c.want) {
			t.Errorf("%s %s: exit code %d, completes\n%s", c.command, c.flag, code, out)
		}
	}
}
