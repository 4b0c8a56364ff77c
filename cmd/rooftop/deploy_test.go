//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
)

// deployDir has the scripts of a deployment, which the README explains.
var deployDir = filepath.Join("testdata", "deploy")

// runScript runs a script with variables and returns its output and exit code.
func runScript(t *testing.T, name string, env []string, args ...string) (output string, code int) {
	t.Helper()
	cmd := exec.Command("sh", append([]string{filepath.Join(deployDir, name)}, args...)...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// The deployment depends on rooftop's exit code: an unresolved or missing verdict does not fail it,
// a server with unexpected settings does.
func TestDeployScriptGoesByTheExitCode(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, rooftop string
		want          int
		says          string
	}{
		{"kept", "0", 0, "tuned"},
		{"open", "3", 0, "left open: no restart is left"},
		{"no load", "4", 0, "nothing could be judged"},
		{"gone", "5", 5, "no server answers at http://127.0.0.1:1"},
		{"not in order", "1", 1, "rooftop recover"},
		{"killed", "143", 143, "rooftop recover"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fake := filepath.Join(dir, "rooftop")
			text := "#!/bin/sh\necho '{\"type\":\"measured\"}'\n" +
				"echo '{\"schema\":\"rooftop.event/v1\",\"type\":\"finished\",\"exit_code\":3,\"reason\":\"no restart is left\",\"command\":\"\"}'\n" +
				"echo \"$@\" >&2\nexit " + c.rooftop + "\n"
			must(t, programtest.Write(fake, []byte(text)))
			out, code := runScript(t, "deploy.sh", []string{
				"ROOFTOP=" + fake, "URL=http://127.0.0.1:1", "EVENTS=" + filepath.Join(dir, "events.jsonl"),
			}, "--slo", "ttft_p99=500ms")
			if code != c.want || !strings.Contains(out, c.says) {
				t.Errorf("exit code %d, want %d and %q:\n%s", code, c.want, c.says, out)
			}
			for _, word := range []string{"tune --auto --json --url http://127.0.0.1:1", "--apply-cmd /", "apply.sh", "--slo ttft_p99=500ms"} {
				if !strings.Contains(out, word) {
					t.Errorf("rooftop was not called with %s:\n%s", word, out)
				}
			}
		})
	}
	if out, code := runScript(t, "deploy.sh", nil); code == 0 || !strings.Contains(out, "URL") {
		t.Errorf("without a URL: exit code %d, %s", code, out)
	}
}

// A change is written into the file of flags, and reverting removes it again.
func TestApplyScriptEditsTheFlags(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flags")
	const before = "--port=8000\n--max-num-seqs=16\n--enforce-eager\n"
	const mode = 0o640
	must(t, errors.Join(os.WriteFile(path, []byte(before), mode), os.Chmod(path, mode)))
	for _, c := range []struct{ name, changes, want string }{
		{
			"several at once", `[{"flag":"--max-num-seqs","from":"16","to":"64"},{"flag":"--block-size","from":"","to":"32"},{"flag":"--enforce-eager","from":"on","to":""}]`,
			"--port=8000\n--max-num-seqs=64\n--block-size=32\n",
		},
		{
			"the revert", `[{"flag":"--enforce-eager","from":"","to":"on"},{"flag":"--max-num-seqs","from":"64","to":"16"},{"flag":"--block-size","from":"32","to":""}]`,
			"--port=8000\n--enforce-eager\n--max-num-seqs=16\n",
		},
		{
			"flags left out", `[{"flag":"--max-num-seqs","from":"16","to":""},{"flag":"--enforce-eager","from":"on","to":""}]`,
			"--port=8000\n",
		},
		{
			"and restored", `[{"flag":"--enforce-eager","from":"","to":"on"},{"flag":"--max-num-seqs","from":"","to":"16"}]`,
			"--port=8000\n--enforce-eager\n--max-num-seqs=16\n",
		},
		{
			"a switch that is on by default", `[{"flag":"--enable-prefix-caching","from":"on","to":"off"}]`,
			"--port=8000\n--enforce-eager\n--max-num-seqs=16\n--no-enable-prefix-caching\n",
		},
		{
			"and on again", `[{"flag":"--enable-prefix-caching","from":"off","to":"on"}]`,
			"--port=8000\n--enforce-eager\n--max-num-seqs=16\n--enable-prefix-caching\n",
		},
	} {
		out, code := runScript(t, "apply.sh", []string{"FLAGS=" + path, "RESTART=echo restarted", "ROOFTOP_CHANGES=" + c.changes})
		if code != 0 || !strings.Contains(out, "restarted") {
			t.Fatalf("%s: exit code %d: %s", c.name, code, out)
		}
		got := readFile(t, path)
		if string(got) != c.want {
			t.Errorf("%s: the flags are\n%swant\n%s", c.name, got, c.want)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: mode %v, want %o: the file may hold a key", c.name, info.Mode(), mode)
		}
	}
	if _, code := runScript(t, "apply.sh", []string{"FLAGS=" + path + ".none", "ROOFTOP_CHANGES=[]"}); code != 64 {
		t.Errorf("without the file: exit code %d, want 64, nothing touched", code)
	}
	if _, code := runScript(t, "apply.sh", []string{"FLAGS=" + path, "RESTART=false", "ROOFTOP_CHANGES=[]"}); code == 0 || code == 64 {
		t.Errorf("a restart that fails: exit code %d", code)
	}
}
