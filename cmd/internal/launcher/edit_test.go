package launcher

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine"
)

func TestLaunchWith(t *testing.T) {
	change := func(flag, from, to string) engine.Change { return engine.Change{Flag: flag, From: from, To: to} }
	for _, c := range []struct {
		name    string
		argv    []string
		env     []string
		file    string
		keep    bool
		changes []engine.Change
		argvTo  []string
		envTo   []string
		fileTo  string
		err     string
	}{
		{name: "in place", argv: []string{"vllm", "serve", "m", "--max-num-seqs", "4", "--port", "1"}, changes: []engine.Change{change("--max-num-seqs", "4", "8")},
			argvTo: []string{"vllm", "serve", "m", "--max-num-seqs", "8", "--port", "1"}},
		{name: "within a script", argv: []string{"sh", "-c", "exec vllm serve m --max-num-seqs 4 2>&1"}, changes: []engine.Change{change("--max-num-seqs", "4", "8")},
			argvTo: []string{"sh", "-c", "exec vllm serve m --max-num-seqs 8 2>&1"}},
		{name: "a variable of the script", argv: []string{"sh", "-c", "vllm serve m --max-num-seqs $SLOTS"}, env: []string{"SLOTS=4"}, changes: []engine.Change{change("--max-num-seqs", "4", "8")},
			argvTo: []string{"sh", "-c", "vllm serve m --max-num-seqs 8"}, envTo: []string{"SLOTS=4"}},
		{name: "left out", argv: []string{"vllm", "serve", "m", "--max-num-seqs=4"}, changes: []engine.Change{change("--max-num-seqs", "4", "")},
			argvTo: []string{"vllm", "serve", "m"}},
		{name: "several", argv: []string{"vllm", "serve", "m", "--no-enable-prefix-caching"}, changes: []engine.Change{change("--enable-prefix-caching", "off", "on"), change("--max-num-seqs", "", "8")},
			argvTo: []string{"vllm", "serve", "m", "--enable-prefix-caching", "--max-num-seqs", "8"}},
		{name: "an assignment on the command line", argv: []string{"env", "VLLM_X=1", "vllm", "serve", "m"}, env: []string{"VLLM_X=0"}, changes: []engine.Change{change("VLLM_X", "1", "2")},
			argvTo: []string{"env", "VLLM_X=2", "vllm", "serve", "m"}, envTo: []string{"VLLM_X=0"}},
		{name: "an assignment in a script", argv: []string{"bash", "-c", "VLLM_X=1 vllm serve m"}, changes: []engine.Change{change("VLLM_X", "1", "a b")},
			argvTo: []string{"bash", "-c", "VLLM_X='a b' vllm serve m"}},
		{name: "a variable given twice", argv: []string{"vllm", "serve", "m"}, env: []string{"VLLM_X=1", "A=1", "VLLM_X=3"}, changes: []engine.Change{change("VLLM_X", "3", "2")},
			argvTo: []string{"vllm", "serve", "m"}, envTo: []string{"VLLM_X=2", "A=1", "VLLM_X=2"}},
		{name: "config file, overridden", argv: []string{"vllm", "serve", "m", "--config", "c.yaml"}, file: "max-num-seqs: 4\n", keep: true, changes: []engine.Change{change("--max-num-seqs", "4", "8")},
			argvTo: []string{"vllm", "serve", "m", "--config", "c.yaml", "--max-num-seqs", "8"}, fileTo: "max-num-seqs: 4\n"},
		{name: "config file, left out and not to be written", argv: []string{"vllm", "serve", "m", "--config", "c.yaml"}, file: "max-num-seqs: 4\n", keep: true, changes: []engine.Change{change("--max-num-seqs", "4", "")},
			err: "a command line cannot unset it"},
		{name: "config file, a switch left out and not to be written", argv: []string{"vllm", "serve", "m", "--config", "c.yaml"}, file: "enforce-eager: true\n", keep: true, changes: []engine.Change{change("--enforce-eager", "on", "")},
			argvTo: []string{"vllm", "serve", "m", "--config", "c.yaml", "--no-enforce-eager"}, fileTo: "enforce-eager: true\n"},
		{name: "as it is", argv: []string{"vllm", "serve", "m", "--max-num-seqs", "4"}, changes: []engine.Change{change("--max-num-seqs", "8", "4")}, err: "already"},
		{name: "nothing", argv: []string{"vllm", "serve", "m"}, err: "nothing to change"},
		{name: "the server is no vLLM", argv: []string{"sleep", "1"}, changes: []engine.Change{change("--max-num-seqs", "8", "4")}, err: "no vLLM server command"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &Launch{Argv: c.argv, Env: c.env}
			if c.file != "" {
				l.Files = []File{{Path: "c.yaml", Data: []byte(c.file)}}
			}
			before := &Launch{Argv: slices.Clone(c.argv), Env: slices.Clone(c.env)}
			got, err := l.With(c.changes, c.keep)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				return
			}
			must(t, err)
			if diff := cmp.Diff(c.argvTo, got.Argv); diff != "" {
				t.Errorf("command (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.envTo, got.Env); diff != "" && len(c.envTo)+len(got.Env) > 0 {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
			if string(got.ConfigText()) != c.fileTo {
				t.Errorf("file %q, want %q", got.ConfigText(), c.fileTo)
			}
			if !slices.Equal(l.Argv, before.Argv) || !slices.Equal(l.Env, before.Env) {
				t.Errorf("the kept launch was changed to %q %q", l.Argv, l.Env)
			}
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
