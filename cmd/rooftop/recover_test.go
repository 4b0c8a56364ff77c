package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/engine/journal"
)

// cutOff creates the state directory of a killed run of a program applier whose launch is lost, or
// without a change in progress.
func cutOff(t *testing.T, port int, records ...journal.Record) (env []string) {
	t.Helper()
	state := t.TempDir()
	s, err := serverdir.OpenStore(serverdir.Root(state), serverdir.Identity{Host: fmt.Sprintf("%s-%d.example", strings.ToLower(t.Name()), os.Getpid()), Port: port, Model: "org/Tiny-1B"}, "1.0.0")
	must(t, err)
	defer s.Close()
	for _, r := range records {
		must(t, s.Write(r))
	}
	return []string{"XDG_STATE_HOME=" + state}
}

func TestRecoverSaysAsksAndEnds(t *testing.T) {
	settled := []journal.Record{{Kind: journal.Begin, Mode: "hook"}}
	lost := []journal.Record{{Kind: journal.Begin, Mode: "attach", Launch: "launch-gone.json"}, {Kind: journal.Intent, Launch: "launch-next.json"}}
	for name, c := range map[string]struct {
		records []journal.Record
		args    []string
		want    string // on either stream
		code    cli.ExitCode
		after   string // in the output of a second call
	}{
		"nothing":            {nil, nil, "Nothing is left to restore", cli.ExitDone, "Nothing is left"},
		"no one to ask":      {settled, nil, "'rooftop recover --yes' does it", cli.ExitRecommendation, "to do"},
		"dry run":            {settled, []string{"--dry-run"}, "1. end the run in the journal", cli.ExitRecommendation, "to do"},
		"yes":                {settled, []string{"--yes"}, "Done.", cli.ExitDone, "Nothing is left"},
		"lost":               {lost, []string{"--yes"}, "rooftop recover --leave", cli.ExitError, "--leave"},
		"lost, and given up": {lost, []string{"--leave"}, "Done.", cli.ExitDone, "Nothing is left"},
		"both":               {settled, []string{"--dry-run", "--yes"}, "leave it out", cli.ExitUsage, "to do"},
	} {
		t.Run(name, func(t *testing.T) {
			env := cutOff(t, 8000, c.records...)
			out, errs, code := call(t, env, append([]string{"recover"}, c.args...)...)
			if code != c.code || !strings.Contains(out+errs, c.want) {
				t.Errorf("exit %d, want %d with %q:\n%s%s", code, c.code, c.want, out, errs)
			}
			if out, errs, _ := call(t, env, "recover"); !strings.Contains(out+errs, c.after) {
				t.Errorf("afterwards: %s%s, want %q", out, errs, c.after)
			}
		})
	}
}

// TestRecoverOfAServerInUse ends with an error, because recover cannot know whether the server runs as before.
func TestRecoverOfAServerInUse(t *testing.T) {
	env := cutOff(t, 8000, journal.Record{Kind: journal.Begin, Mode: "hook"})
	dirs, err := serverdir.Dirs(serverdir.Root(strings.TrimPrefix(env[0], "XDG_STATE_HOME=")))
	if err != nil || len(dirs) != 1 {
		t.Fatal(dirs, err)
	}
	other, err := serverdir.OpenUnfinished(dirs[0], "")
	must(t, err)
	defer other.Close()
	for _, flag := range []string{"--yes", "--json", "--dry-run"} {
		if out, errs, code := call(t, env, "recover", flag); code != cli.ExitError || !strings.Contains(out, "another rooftop uses this server") {
			t.Errorf("%s: exit %d: %s%s", flag, code, out, errs)
		}
	}
}

// A recovered run is marked as such in the history.
func TestHistoryOfARecoveredRun(t *testing.T) {
	env := cutOff(t, 8000, journal.Record{Kind: journal.Begin, Mode: "hook"})
	if out, _, _ := call(t, env, "history"); !strings.Contains(out, "cut off") {
		t.Errorf("before: %s", out)
	}
	if _, errs, code := call(t, env, "recover", "--yes"); code != cli.ExitDone {
		t.Fatal(errs)
	}
	if out, _, _ := call(t, env, "history"); !strings.Contains(out, "recovered") {
		t.Errorf("after: %s", out)
	}
	if left, _ := filepath.Glob(filepath.Join(strings.TrimPrefix(env[0], "XDG_STATE_HOME="), "rooftop", "servers", "*", "launch-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// The only copy of a launch is not deleted if its journal cannot be read.
func TestAJournalOfANewerRooftop(t *testing.T) {
	state := t.TempDir()
	env := []string{"XDG_STATE_HOME=" + state}
	s, err := serverdir.OpenStore(serverdir.Root(state), serverdir.Identity{Host: fmt.Sprintf("newer-%d.example", os.Getpid()), Port: 9, Model: "org/Tiny-1B"}, "1.0.0")
	must(t, err)
	name, err := s.Keep(&launcher.Launch{Argv: []string{"vllm", "serve", "org/Tiny-1B"}})
	must(t, err)
	for _, r := range []journal.Record{{Kind: journal.Begin, Launch: name}, {Kind: journal.Intent}, {Kind: journal.Stopped}} {
		must(t, s.Write(r))
	}
	must(t, s.Close())
	path := filepath.Join(s.Dir(), "journal.jsonl")
	text := readFile(t, path)
	must(t, os.WriteFile(path, bytes.ReplaceAll(text, []byte("journal/v1"), []byte("journal/v2")), 0o600))
	for _, c := range []struct {
		args []string
		want string
		code cli.ExitCode
	}{
		{[]string{"history"}, "lines 1 to 3 of " + path + ", written by a newer rooftop", cli.ExitDone},
		{[]string{"history"}, "No run can be read", cli.ExitDone},
		{[]string{"report", "last"}, "no run can be read", cli.ExitError},
		{[]string{"tune", "--dry-run", "--no-report", "--url", "http://127.0.0.1:9"}, "'rooftop recover' says more", cli.ExitUnreachable},
		{[]string{"recover", "--yes"}, "lines 1 to 3", cli.ExitError},
		{[]string{"recover", "--yes", "--json"}, `"began": null`, cli.ExitError},
		{[]string{"recover", "--leave"}, "Done.", cli.ExitDone},
		{[]string{"recover"}, "Nothing is left", cli.ExitDone},
	} {
		_, err := os.Stat(filepath.Join(s.Dir(), name))
		if there, want := err == nil, c.want != "Nothing is left"; there != want {
			t.Errorf("before %v: the launch is there: %v, want %v", c.args, there, want)
		}
		out, errs, code := call(t, env, c.args...)
		if text := strings.Join(strings.Fields(out+errs), " "); code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%v: exit %d, want %d with %q:\n%s%s", c.args, code, c.code, c.want, out, errs)
		}
	}
}

// If a server does not respond, a killed run of it is mentioned.
func TestAKilledRunIsNamedWhereItsServerDoesNotAnswer(t *testing.T) {
	const nobody = 9 // discard: no server of a test listens there
	env := cutOff(t, nobody, journal.Record{Kind: journal.Begin, Mode: "hook"})
	for _, args := range [][]string{{"--dry-run"}, {"--auto", "--restart-in-place"}} {
		for url, told := range map[string]bool{"http://127.0.0.1:9": true, "http://127.0.0.1:7": false} {
			_, stderr, code := call(t, env, append([]string{"tune", "--no-report", "--url", url}, args...)...)
			if code != cli.ExitUnreachable || strings.Contains(stderr, "'rooftop recover' shows") != told {
				t.Errorf("%v %s: exit %d: %s", args, url, code, stderr)
			}
		}
	}
}
