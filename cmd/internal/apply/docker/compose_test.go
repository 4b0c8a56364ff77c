package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply/manager"
	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

func TestWithChanges(t *testing.T) {
	slots := []engine.Change{{Flag: "--max-num-seqs", From: "4", To: "16"}}
	adds := []engine.Change{{Flag: "--max-num-batched-tokens", To: "4096"}}
	both := slices.Concat(slots, adds)
	caching := []engine.Change{{Flag: "--enable-prefix-caching", From: "off", To: "on"}}
	for _, tc := range []struct {
		name, command string
		changes       []engine.Change
		want          string // "" for a refusal
	}{
		{"a list", "\n      - m # the model\n      - --max-num-seqs\n      - \"4\" # too few\n\n      # the port\n      - --port\n      - '8000'", both,
			"\n      - m # the model\n      - --max-num-seqs\n      - \"16\" # too few\n\n      # the port\n      - --port\n      - '8000'\n      - '--max-num-batched-tokens'\n      - '4096'"},
		{"numbers without quotes", "\n      - m\n      - --max-num-seqs\n      - 4", both, "\n      - m\n      - --max-num-seqs\n      - 16\n      - --max-num-batched-tokens\n      - 4096"},
		{"one word for flag and value", "\n      - m\n      - --max-num-seqs=4", both, "\n      - m\n      - --max-num-seqs=16\n      - --max-num-batched-tokens=4096"},
		{"in one line", `["m", "--max-num-seqs", "4", "--no-enable-prefix-caching"] # ours`, slots, `["m", "--max-num-seqs", "16", "--no-enable-prefix-caching"] # ours`},
		{"in one line, added", `[m, --max-num-seqs, "4"]`, adds, `[m, --max-num-seqs, "4", "--max-num-batched-tokens", "4096"]`},
		{"a switch", `["m", "--no-enable-prefix-caching", "--port", "8000"]`, caching, `["m", "--enable-prefix-caching", "--port", "8000"]`},
		{"a text", `m --max-num-seqs 4 --port 8000 # ours`, both, `m --max-num-seqs 16 --port 8000 --max-num-batched-tokens 4096 # ours`},
		{"a text in quotes", `"m --max-num-seqs 4"`, slots, `"m --max-num-seqs 16"`},
		{"a folded text", ">\n      m\n      --max-num-seqs 4\n      --port 8000", both, ">\n      m\n      --max-num-seqs 16\n      --port 8000 --max-num-batched-tokens 4096"},
		{"a folded text, chomped", ">-\n      m --max-num-seqs 4\n", slots, ">-\n      m --max-num-seqs 16\n"},
		{"with variables", `["m", "--max-num-seqs", "${SLOTS:-4}", "--served-model-name", "$$m"]`, slots, `["m", "--max-num-seqs", "16", "--served-model-name", "$$m"]`},
		{"a script", `["sh", "-c", "vllm serve m --max-num-seqs 4"]`, slots, `["sh", "-c", "vllm serve m --max-num-seqs 16"]`},
		{"an alias", "*shared", slots, ""},
		{"a word over two lines", "\n      - m\n      - --max-num-seqs\n      - \"4\\\n        \"", slots, ""},
		{"nothing", "", slots, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			const file = "# ours\nx-shared: &shared [m]\nservices:\n  other:\n    command: [\"--max-num-seqs\", \"4\"]\n  llm:\n    image: v # pinned\n    command: %s\n\n    ports: [ \"8000:8000\" ]\n"
			entrypoint := []string{"vllm", "serve"}
			if tc.name == "a script" {
				entrypoint = nil
			}
			got, err := withChanges(fmt.Appendf(nil, file, tc.command), "llm", entrypoint, tc.changes)
			if (err == nil) != (tc.want != "") || err == nil && string(got) != fmt.Sprintf(file, tc.want) {
				t.Errorf("%v\n%s", err, got)
			}
		})
	}
}

const composeText = `# ours
services:
  llm:
    command: [m, --max-num-seqs, "4", --api-key, sk-abcdefghijklmnopqrstuvwxyz]  # few
`

// fakeCompose is a project with one service, and the Docker that runs its container.
type fakeCompose struct {
	*fake
	path  string
	calls int      // after which rooftop is killed
	env   []string // of the latest call
}

func newFakeCompose(t *testing.T) *fakeCompose {
	t.Helper()
	f := &fakeCompose{fake: newFake(), path: filepath.Join(t.TempDir(), "compose.yaml"), calls: 1000}
	must(t, os.WriteFile(f.path, []byte(composeText), 0o640))
	return f
}

func (f *fakeCompose) run(_ context.Context, env, argv []string, stdin []byte) ([]byte, error) {
	f.env = env
	if f.calls--; f.calls < 0 {
		return nil, errKilled
	}
	text := stdin
	if !slices.Contains(argv, "-") {
		text, _ = os.ReadFile(f.path)
	}
	var project map[string]any
	if err := yaml.Unmarshal(text, &project); err != nil {
		return nil, err
	}
	if slices.Contains(argv, "config") {
		return json.Marshal(project)
	}
	var words []string
	for _, word := range project["services"].(map[string]any)["llm"].(map[string]any)["command"].([]any) {
		words = append(words, fmt.Sprint(word))
	}
	f.all["vllm-0"].Config.Cmd = words
	return nil, nil
}

// by returns the service, as New does where its container has been found, or as Known does for another rooftop.
func (f *fakeCompose) by(t *testing.T, recovers bool) *service {
	t.Helper()
	c := f.fake.by(t)
	c.known.Compose = &launcher.Compose{Command: []string{"docker", "compose"}, Files: []string{f.path}, Service: "llm", Path: f.path, Entrypoint: c.was.Config.Entrypoint}
	if recovers {
		c.was, c.kept = nil, nil
	}
	return &service{Container: c, compose: c.known.Compose, run: f.run}
}

// state is the file, the files beside it, and what runs.
func (f *fakeCompose) state(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(f.path)
	must(t, err)
	info, _ := os.Stat(f.path)
	beside, _ := filepath.Glob(filepath.Join(filepath.Dir(f.path), ".*"))
	return fmt.Sprintf("%s%v %d beside, runs %v", text, info.Mode(), len(beside), f.all["vllm-0"].Config.Cmd)
}

// TestComposeKilled kills rooftop after each call of Compose in a change, and has another one recover.
func TestComposeKilled(t *testing.T) {
	undo := &manager.Change{Revert: true, Changes: engine.InverseChanges(change.All)}
	was := newFakeCompose(t).state(t)
	for calls := 0; ; calls++ {
		f := newFakeCompose(t)
		f.calls = calls
		err := f.by(t, false).Make(t.Context(), change)
		state := f.state(t)
		if untouched := new(manager.UntouchedError); errors.As(err, &untouched) && state != was {
			t.Errorf("after %d calls: %v, at %s", calls, err, state)
		}
		if err == nil && (!strings.Contains(state, `--max-num-seqs, "8"`) || !strings.Contains(state, "--max-num-seqs 8")) {
			t.Errorf("with the change: %s", state)
		}
		f.calls = 1000
		if err := f.by(t, true).Make(t.Context(), undo); err != nil || f.state(t) != was {
			t.Errorf("killed after %d calls at %s: %v: %s", calls, state, err, f.state(t))
		}
		if err == nil {
			break
		}
	}
}

// TestComposeKeep keeps a change, and reverts the next one to it.
func TestComposeKeep(t *testing.T) {
	f := newFakeCompose(t)
	s := f.by(t, false)
	must(t, errors.Join(s.Make(t.Context(), change), s.Keep(t.Context())))
	kept := f.state(t)
	next := []engine.Change{{Flag: "--max-num-seqs", From: "8", To: "16"}}
	err := errors.Join(s.Make(t.Context(), &manager.Change{All: next}), s.Make(t.Context(), &manager.Change{Revert: true, Changes: engine.InverseChanges(next)}))
	if err != nil || f.state(t) != kept || !strings.Contains(kept, `"8"`) {
		t.Errorf("%v: %s, want %s", err, f.state(t), kept)
	}
}

// TestComposeSomebodyElse checks that what someone else wrote into the file is not lost.
func TestComposeSomebodyElse(t *testing.T) {
	f := newFakeCompose(t)
	s := f.by(t, false)
	must(t, s.Make(t.Context(), change))
	text, _ := os.ReadFile(f.path)
	must(t, os.WriteFile(f.path, append(text, "# theirs\n"...), 0o640))
	state := f.state(t)
	err := s.Make(t.Context(), &manager.Change{Revert: true, Changes: engine.InverseChanges(change.All)})
	if err == nil || !strings.Contains(err.Error(), "someone changed "+f.path) || f.state(t) != state {
		t.Errorf("%v: %s", err, f.state(t))
	}
	var untouched *manager.UntouchedError
	if err := s.Make(t.Context(), change); !errors.As(err, &untouched) || f.state(t) != state {
		t.Errorf("%v: %s", err, f.state(t))
	}
}

// TestComposeInAnotherShell recovers where variables that the project depends on have other values: Compose gets those
// of the run, and all others of the shell.
func TestComposeInAnotherShell(t *testing.T) {
	f := newFakeCompose(t)
	text := strings.Replace(composeText, "    command", "    image: vllm:${TAG:-latest}\n    environment: [SHARED]\n    command", 1)
	must(t, os.WriteFile(f.path, []byte(text), 0o640))
	for name, value := range map[string]string{"TAG": "v1", "COMPOSE_PROFILES": "gpu", "DOCKER_HOST": "unix:///nowhere", "UNRELATED": "1"} {
		t.Setenv(name, value)
	}
	c := f.fake.by(t)
	c.was.Config.Labels = map[string]string{projectLabel: "p", serviceLabel: "llm", filesLabel: f.path, hashLabel: "1"}
	s := &service{Container: c, run: func(_ context.Context, _, argv []string, _ []byte) ([]byte, error) {
		if slices.Contains(argv, "version") {
			return []byte("2.40.1\n"), nil
		}
		return []byte("llm 1\n"), nil
	}}
	must(t, s.find(t.Context()))
	stored, err := json.Marshal(c.known)
	if err != nil || strings.Contains(string(stored), "UNRELATED") {
		t.Fatalf("%v: %s", err, stored)
	}
	known := new(launcher.Container)
	must(t, json.Unmarshal(stored, known))
	for name, value := range map[string]string{"TAG": "v2", "SHARED": "theirs", "COMPOSE_PROFILES": "", "COMPOSE_FILE": "other.yaml", "UNRELATED": "2"} {
		t.Setenv(name, value)
	}
	again := Known(&launcher.Launch{Container: known}).(*service)
	again.daemon.client.Transport, again.run = f.fake, f.run
	must(t, again.Make(t.Context(), &manager.Change{Revert: true}))
	got := launch.Environ(f.env)
	for name, want := range map[string]string{"TAG": "v1", "SHARED": "", "COMPOSE_PROFILES": "gpu", "COMPOSE_FILE": "", "DOCKER_HOST": "unix:///nowhere", "UNRELATED": "2"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if _, set := got["SHARED"]; set {
		t.Error("a variable that was not set is")
	}
}

// TestComposeRefused checks the sentences about services that are left alone.
func TestComposeRefused(t *testing.T) {
	for _, tc := range []struct{ version, hash, label, want string }{
		{"v2.40.1", "1", "", ""},
		{"1.29.2", "1", "", "needs version 2 and finds 1.29.2: set the flag in command: of the service llm"},
		{"", "1", "", "there is no docker compose here"},
		{"2.40.1", "2", "", "run docker compose up -d llm first"},
		{"2.40.1", "1", oneOffLabel, "was made by docker compose run"},
	} {
		f := newFakeCompose(t)
		c := f.fake.by(t)
		c.was.Config.Labels = map[string]string{projectLabel: "p", serviceLabel: "llm", filesLabel: f.path, hashLabel: "1", tc.label: "True"}
		s := &service{Container: c}
		s.run = func(_ context.Context, _, argv []string, _ []byte) ([]byte, error) {
			switch {
			case slices.Contains(argv, "version") && (tc.version == "" || argv[0] == "docker-compose"):
				return nil, errors.New("not found")
			case slices.Contains(argv, "version"):
				return []byte(tc.version + "\n"), nil
			}
			return []byte("llm " + tc.hash + "\n"), nil
		}
		err := s.find(t.Context())
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}
