//go:build e2e && proof && linux

package main_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestProofMachines has a real vLLM with 4 slots under 32 clients, as a service of a real systemd and in a container of
// a real Docker, and rooftop change it.
//
//	ROOFTOP_E2E_VLLM=DIR ROOFTOP_E2E_DOCKER=DIR go test -tags e2e,proof -run ProofMachines -v -timeout 30m ./cmd/rooftop
func TestProofMachines(t *testing.T) {
	dir := installation(t)
	argv := slices.Concat([]string{
		filepath.Join(dir, "venv", "bin", "python"), "-m", "vllm.entrypoints.openai.api_server",
		"--model", filepath.Join(dir, "..", "model"), "--load-format", "dummy", "--enforce-eager",
		"--host", "127.0.0.1", "--port", "8001", "--max-num-seqs", "4",
	}, quickType())
	env := []string{"HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1", "DO_NOT_TRACK=1", "VLLM_CPU_KVCACHE_SPACE=1"}
	t.Run("a unit", func(t *testing.T) {
		text := "[Service]\nEnvironment=HOME=/root " + strings.Join(env, " ") + "\nExecStart=" + strings.Join(argv, " ") + "\nRestart=always\n"
		m := boot(t, "systemd/boot.sh", "vllm@.service", []byte(text), "sh", "-c", "systemctl is-system-running | grep -qE 'running|degraded'")
		s := &service{m, t, 8001, false}
		before := s.files()
		s.systemctl("start", s.name())
		proveMachine(t, s)
		after := s.files()
		if !strings.HasPrefix(after, before) || !strings.Contains(after, "zz-rooftop.conf") {
			t.Errorf("its files are now:\n%s", after)
		}
		t.Logf("it runs %s", s.consistent())
	})
	t.Run("a container", func(t *testing.T) {
		m := boot(t, "docker/boot.sh", "serve", []byte(serveScript), "docker", "image", "inspect", "empty")
		b := boxed{&service{m, t, 8001, false}}
		t.Cleanup(func() { // control groups are the machine's own
			b.output("sh", "-c", `docker rm --force --volumes $(docker ps --all --quiet); rmdir /sys/fs/cgroup/*/docker /sys/fs/cgroup/docker; true`)
		})
		run := []string{"run", "--detach", "--name", b.name(), "--restart", "always", "--network", "host", "--security-opt", "seccomp=unconfined", "--tmpfs", "/tmp", "--shm-size", "1g", "--env", "HOME=/tmp"}
		for _, v := range env {
			run = append(run, "--env", v)
		}
		python, err := filepath.EvalSymlinks(argv[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/usr", "/lib", "/lib64", "/bin", "/etc", filepath.Dir(filepath.Dir(python)), filepath.Dir(dir)} {
			run = append(run, "--volume", path+":"+path+":ro")
		}
		b.docker(slices.Concat(run, []string{"--entrypoint", argv[0], "empty"}, argv[1:])...)
		before := b.inspect()
		proveMachine(t, b.service)
		t.Logf("it runs %s, and ran %s", command(b.inspect()), command(before))
	})
}

// proveMachine has rooftop tune the server of a machine, which is on its way, and reports what it did.
func proveMachine(t *testing.T, s *service) {
	t.Helper()
	began := time.Now()
	s.load(32, "100", "64")
	t.Logf("it answers after %s", time.Since(began).Round(time.Second))
	var said bytes.Buffer
	cmd := s.rooftop("tune", "--auto", "--json", "--no-report", "--restart-in-place", "--url", s.url(), "--max-restarts", "3", "--start-timeout", "180s")
	cmd.Stderr = &said
	began = time.Now()
	out, err := cmd.Output()
	events := eventsOf(t, out)
	t.Log(fmt.Sprintf("exit %d after %s\n", cmd.ProcessState.ExitCode(), time.Since(began).Round(time.Second)) + told(events))
	if code := cmd.ProcessState.ExitCode(); code != 0 && code != 3 || len(ofType(events, "kept")) == 0 {
		t.Errorf("%v: %s", err, said.String())
	}
}
