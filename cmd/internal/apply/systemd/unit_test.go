package systemd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply/manager"
	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/engine"
)

// A unit with a kept launch, whose files are in a folder of the test.
func unitOf(t *testing.T, prefix string, argv ...string) *Unit {
	t.Helper()
	dir := t.TempDir()
	u := &launcher.Unit{Name: "vllm.service", UID: -1, Prefix: prefix, Trial: filepath.Join(dir, trialFile), Kept: filepath.Join(dir, keptFile)}
	return &Unit{unit: u, kept: &launcher.Launch{Argv: argv, Env: []string{"PATH=/bin", "VLLM_LOGGING_LEVEL=INFO"}, Unit: u}}
}

// TestDropIn checks the file of a change: all of systemd's own characters stand for themselves.
func TestDropIn(t *testing.T) {
	u := unitOf(t, "-", "/opt/vllm", "serve", "m", "--max-num-seqs", "4", "--served-model-name", `a "b" $c 50% \d`, "--chat-template", "x\ny", "")
	if err := os.WriteFile(u.unit.Kept, []byte(keptHeading+"[Service]\nExecStart=\nExecStart=/opt/vllm\nEnvironment=A=1\nEnvironment=\"VLLM_LOGGING_LEVEL=WARN ING\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	target, err := u.target([]engine.Change{{Flag: "--max-num-seqs", From: "4", To: "8"}, {Flag: "VLLM_LOGGING_LEVEL", From: "INFO", To: "DEBUG"}})
	if err != nil {
		t.Fatal(err)
	}
	want := trialHeading + `[Service]
ExecStart=
ExecStart=-/opt/vllm serve m --max-num-seqs 8 --served-model-name "a \"b\" $$c 50%% \\d" --chat-template "x\x0ay" ""
Environment=A=1
Environment=VLLM_LOGGING_LEVEL=DEBUG
`
	if got := string(u.dropIn(target)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestExpanded(t *testing.T) {
	for _, c := range []struct {
		start execStart
		want  string // "" where variables stand in it
	}{
		{execStart{argv: []string{"/opt/vllm", "serve", "$$m"}}, "/opt/vllm serve $m"},
		{execStart{argv: []string{"/opt/vllm", "serve", "$MODEL"}}, ""},
		{execStart{argv: []string{"/opt/vllm", "serve", "${MODEL}"}}, ""},
		{execStart{argv: []string{"/opt/vllm", "serve", "$MODEL"}, prefix: ":"}, "/opt/vllm serve $MODEL"},
	} {
		got, ok := c.start.expanded()
		if ok != (c.want != "") || strings.Join(got, " ") != c.want {
			t.Errorf("%q: %q, %v", c.start.argv, got, ok)
		}
	}
}

// TestRefused checks the sentences about units that are left alone.
func TestRefused(t *testing.T) {
	for property, want := range map[string]string{
		"NeedDaemonReload": "daemon-reload", "Transient": "systemd-run", "RefuseManualStop": "by hand", "": "",
	} {
		properties := map[string]any{"LoadState": "loaded", "Type": "simple", "MainPID": uint32(7), property: true}
		err := unitOf(t, "", "/opt/vllm").changeable(properties, 7)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", property, err, want)
		}
	}
	if err := unitOf(t, "", "/opt/vllm").changeable(map[string]any{"LoadState": "loaded", "MainPID": uint32(7)}, 8); err == nil || !strings.Contains(err.Error(), "main process of vllm.service is 7") {
		t.Errorf("another main process: %v", err)
	}
}

func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		uid                  int
		folders, trial, kept string
	}{
		{
			-1, `["/etc/systemd/system.control", "/run/systemd/system.control", "/run/systemd/transient", "/run/systemd/generator.early", "/etc/systemd/system", "/run/systemd/system", "/lib/systemd/system"]`,
			"/run/systemd/system/vllm.service.d/zzz-rooftop-trial.conf", "/etc/systemd/system/vllm.service.d/zz-rooftop.conf",
		},
		{
			1000, `["/home/a/.config/systemd/user.control", "/run/user/1000/systemd/transient", "/home/a/.config/systemd/user", "/etc/systemd/user", "/run/user/1000/systemd/user"]`,
			"/run/user/1000/systemd/user/vllm.service.d/zzz-rooftop-trial.conf", "/home/a/.config/systemd/user/vllm.service.d/zz-rooftop.conf",
		},
	} {
		u := &Unit{unit: &launcher.Unit{Name: "vllm.service", UID: c.uid}}
		if err := u.place(c.folders); err != nil || u.unit.Trial != c.trial || u.unit.Kept != c.kept {
			t.Errorf("%d: %v: %s and %s", c.uid, err, u.unit.Trial, u.unit.Kept)
		}
	}
}

func TestStepsOfAUnit(t *testing.T) {
	u := unitOf(t, "", "/opt/vllm", "serve", "m", "--max-num-seqs", "4", "--api-key", "sk-abcdefghijklmnopqrstuvwxyz")
	steps := strings.Join(u.Steps(&manager.Change{All: []engine.Change{{Flag: "--max-num-seqs", From: "4", To: "8"}}}), "\n")
	if !strings.Contains(steps, u.unit.Trial+", which starts /opt/vllm serve m --max-num-seqs 8") || strings.Contains(steps, "sk-abc") {
		t.Error(steps)
	}
	if back := u.Steps(&manager.Change{Revert: true}); back[0] != "remove "+u.unit.Trial || back[1] != "reload systemd and restart vllm.service" {
		t.Error(back)
	}
}
