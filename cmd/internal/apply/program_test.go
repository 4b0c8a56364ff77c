package apply

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply/docker"
	"github.com/rooftop-dev/rooftop/cmd/internal/apply/manager"
	"github.com/rooftop-dev/rooftop/cmd/internal/apply/systemd"
	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/collect/probe"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// TestObjects: a container has one name for all who change it, however it was reached, and so have a unit and a
// Compose file.
func TestObjects(t *testing.T) {
	link := filepath.Join(t.TempDir(), "docker.sock")
	must(t, os.Symlink(os.DevNull, link))
	for _, one := range []struct {
		by   manager.Manager
		want []string
	}{
		{docker.Known(&launcher.Launch{Container: &launcher.Container{Host: "unix://" + link, Name: "vllm-0"}}), []string{"container vllm-0 of " + os.DevNull}},
		{docker.Known(&launcher.Launch{Container: &launcher.Container{Host: "unix:///nowhere", Name: "a", Compose: &launcher.Compose{Path: "/srv/compose.yaml"}}}), []string{"container a of /nowhere", "file /srv/compose.yaml"}},
		{systemd.Known(&launcher.Launch{Unit: &launcher.Unit{Name: "vllm.service", UID: -1}}), []string{"unit vllm.service of user -1"}},
		{newUserProgram(&launcher.Launch{Argv: []string{"restart"}}, "", 0, 0), nil},
	} {
		if diff := cmp.Diff(one.want, newManaged(one.by, Plan{}).Objects()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", one.by.Name(), diff)
		}
	}
}

func TestBetween(t *testing.T) {
	c := func(flag, from, to string) engine.Change { return engine.Change{Flag: flag, From: from, To: to} }
	for _, one := range []struct {
		name           string
		from, to, want []engine.Change
	}{
		{"first", nil, []engine.Change{c("a", "1", "2")}, []engine.Change{c("a", "1", "2")}},
		{"same flag again", []engine.Change{c("a", "1", "2")}, []engine.Change{c("a", "1", "3")}, []engine.Change{c("a", "2", "3")}},
		{"another flag", []engine.Change{c("a", "1", "2")}, []engine.Change{c("b", "", "3")}, []engine.Change{c("b", "", "3"), c("a", "2", "1")}},
		{"back", []engine.Change{c("a", "1", "2")}, nil, []engine.Change{c("a", "2", "1")}},
		{"the same", []engine.Change{c("a", "1", "2")}, []engine.Change{c("a", "1", "2")}, nil},
	} {
		if diff := cmp.Diff(one.want, between(one.from, one.to)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", one.name, diff)
		}
	}
}

func TestCompared(t *testing.T) {
	answer := func(text string, tokens []string, p ...float64) probe.Answer {
		return probe.Answer{Text: text, Tokens: tokens, Logprobs: p}
	}
	got := compared(
		[]probe.Answer{answer("ab", []string{"a", "b"}, -1, -2), answer("ac", []string{"a", "c", "x"}, -1, -1, -1), {Text: "n"}},
		[]probe.Answer{answer("ab", []string{"a", "b"}, -1.2, -2), answer("ad", []string{"a", "d", "x"}, -1.4, -9, -9), {Text: "n"}},
	)
	want := &loop.AnswerCheck{Prompts: 3, Same: 2, Drift: stat.Some(0.2)}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return a-b < 1e-12 && b-a < 1e-12 })); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if got := compared([]probe.Answer{{Text: "a"}}, []probe.Answer{{Text: "b"}}); got.Drift.OK || got.Same != 0 {
		t.Errorf("without log probabilities %+v", got)
	}
}
