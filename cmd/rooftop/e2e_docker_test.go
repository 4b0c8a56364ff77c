//go:build e2e && linux

package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A server in a container, with a real Docker in separate namespaces and simulated servers. ROOFTOP_E2E_DOCKER is the
// output of .ci/install-docker, ROOFTOP_E2E_COMPOSE that of .ci/install-compose, and ROOFTOP_E2E_KILLS the number of
// times that a rooftop is killed.

// boxed is a server that Docker runs.
type boxed struct{ *service }

func (b boxed) state() any { return b.inspect() }

func (b boxed) keeps(before, after any) bool {
	was, is := before.(map[string]any), after.(map[string]any)
	return command(was) != command(is) && cmp.Equal(settled(was), settled(is))
}

// composed is a server run by a service of Docker Compose.
type composed struct{ boxed }

// composeState is a Compose file, the number of files beside it, and the command line that runs.
type composeState struct {
	File   string
	Beside int
	Argv   string
}

// state checks that the container runs what the file says.
func (c composed) state() any {
	c.t.Helper()
	text, err := os.ReadFile(c.file())
	files, errDir := os.ReadDir(filepath.Dir(c.file()))
	if err = errors.Join(err, errDir); err != nil {
		c.t.Fatal(err)
	}
	if said := c.output("docker-compose", "--file", c.file(), "up", "--detach", "--dry-run"); strings.Contains(said, "Recreate") {
		c.t.Errorf("the container is not as the file says: %s", said)
	}
	return composeState{string(text), len(files) - 1, command(c.inspect())}
}

func (c composed) keeps(before, after any) bool {
	was, is := before.(composeState), after.(composeState)
	_, rest, _ := strings.Cut(is.Argv, "--max-num-seqs ")
	slots, _, _ := strings.Cut(rest, " ")
	return slots != "4" && is.File == strings.Replace(was.File, `"4" # too few`, `"`+slots+`" # too few`, 1) && is.Beside == 0
}

// serveScript starts a server like an entrypoint. A server above port 9000 does not start with a change, and one
// above 7000 starts slowly with it.
const serveScript = `#!/bin/sh
case "$*" in *"--port 9"*"--max-num-seqs 4 "*) ;; *"--port 9"*) echo "ValueError: 100% of the memory is taken" >&2; exit 3 ;;
*"--port 7"*"--max-num-seqs 4 "*) ;; *"--port 7"*) set -- "$@" --sim-fault slow@0s+1hx9 ;; esac
exec "$@"
`

// container runs a server in a container with everything that must not change. Its port is published as another one,
// unless the container uses the machine's network.
func (m *machine) container(t *testing.T, port int, own bool) boxed {
	t.Helper()
	b := boxed{&service{machine: m, t: t, port: port}}
	within, network := port, []string{"--network", "host"}
	if own {
		within, network = 8000, []string{"--network", "front", "--network-alias", "llm", "--ip", "172.30.0.9", "--publish", fmt.Sprintf("127.0.0.1:%d:8000", port)}
	}
	b.docker(slices.Concat([]string{
		"run", "--detach", "--name", b.name(), "--restart", "always", "--label", "team=a b", "--env", "VLLM_LOGGING_LEVEL=INFO", "--memory", "2g", "--shm-size", "80m",
		"--ulimit", "nofile=4096:8192", "--cap-add", "SYS_NICE", "--cap-drop", "MKNOD", "--security-opt", "seccomp=unconfined", "--stop-timeout", "20", "--add-host", "peer:10.0.0.1",
		"--health-cmd", "test -e /rooftop", "--health-interval", "1h", "--tmpfs", "/tmp:size=16m", "--volume", "/data", "--mount", "type=volume,target=/cache", "--log-opt", "max-size=10m",
		"--volume", "/usr:/usr:ro", "--volume", m.binary + ":/rooftop:ro", "--volume", filepath.Join(m.dir, "shared", "serve") + ":/serve:ro", "--entrypoint", "/serve",
	}, network, []string{
		"empty", "/rooftop", "sim", simModel, "--host", "0.0.0.0", "--port", strconv.Itoa(within), "--max-num-seqs", "4", "--sim-gpu", "NVIDIA A100-SXM4-80GB", "--max-model-len", "4096",
		"--sim-startup-time", "300ms", "--served-model-name", `$m "%i"`,
	})...)
	if own {
		b.docker("network", "connect", "--alias", "behind", "back", b.name())
	}
	b.load(12, "64", "32-64")
	return b
}

func (b boxed) name() string { return fmt.Sprintf("vllm-%d", b.port) }

func (b boxed) docker(args ...string) string {
	b.t.Helper()
	return b.output(append([]string{"docker"}, args...)...)
}

// composeText is a service with too few slots. serveScript explains the port.
const composeText = `# A server of ours.
name: NAME
services:
  llm:
    container_name: NAME # as people know it
    image: empty
    network_mode: host
    entrypoint: [ /serve, /rooftop, sim ]
    environment: { VLLM_LOGGING_LEVEL: INFO }
    volumes: [ "/usr:/usr:ro", "BINARY:/rooftop:ro", "SHARED/serve:/serve:ro" ]

    command:
      - MODEL
      - --port
      - "PORT"
      # as many as our old card took
      - --max-num-seqs
      - "4" # too few
      - --sim-gpu=NVIDIA A100-SXM4-80GB
      - --max-model-len=4096
      - --sim-startup-time=300ms
      - --served-model-name=$$m
`

// compose runs a server as a service of Docker Compose.
func (m *machine) compose(t *testing.T, port int) composed {
	t.Helper()
	c := composed{boxed{&service{machine: m, t: t, port: port}}}
	text := strings.NewReplacer("NAME", c.name(), "BINARY", m.binary, "SHARED", filepath.Join(m.dir, "shared"), "MODEL", simModel, "PORT", strconv.Itoa(port)).Replace(composeText)
	must(t, errors.Join(os.MkdirAll(filepath.Dir(c.file()), 0o755), os.WriteFile(c.file(), []byte(text), 0o644)))
	c.output("docker-compose", "--file", c.file(), "up", "--detach")
	c.load(12, "64", "32-64")
	return c
}

func (c composed) file() string {
	return filepath.Join(c.dir, "shared", c.name()+".compose", "compose.yaml")
}

// inspect describes the container without what a start changes.
func (b boxed) inspect() map[string]any {
	b.t.Helper()
	for line := range strings.Lines(b.docker("ps", "--all", "--format", "{{.Names}} {{.State}}")) {
		if name, state, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(name, b.name()+"-") || name == b.name() && state != "running" {
			b.t.Errorf("the container %s is %s", name, state)
		}
	}
	var all []map[string]any
	must(b.t, json.Unmarshal([]byte(b.docker("inspect", b.name())), &all))
	one := all[0]
	delete(one, "State")
	settings := one["NetworkSettings"].(map[string]any)
	networks := settings["Networks"].(map[string]any)
	for _, network := range networks {
		for _, field := range []string{"EndpointID", "MacAddress", "IPAddress", "NetworkID"} {
			delete(network.(map[string]any), field)
		}
	}
	// Docker returns them in no fixed order.
	slices.SortFunc(one["Mounts"].([]any), func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	one["NetworkSettings"] = map[string]any{"Networks": networks, "Ports": settings["Ports"]}
	return one
}

// settled returns the properties of a container that stay when it is created again with another command line.
func settled(one map[string]any) map[string]any {
	id := one["Id"].(string)
	text, _ := json.Marshal(one)
	var same map[string]any
	_ = json.Unmarshal(bytes.ReplaceAll(text, []byte(id[:12]), []byte("short")), &same)
	for _, field := range []string{"Id", "Created", "Args", "ResolvConfPath", "HostnamePath", "HostsPath", "LogPath", "GraphDriver"} {
		delete(same, field)
	}
	config := same["Config"].(map[string]any)
	delete(config, "Cmd")
	delete(config["Labels"].(map[string]any), "dev.rooftop.replaces")
	host := same["HostConfig"].(map[string]any)
	binds := host["Binds"].([]any)
	// Anonymous volumes are bound by their generated name.
	host["Binds"] = slices.DeleteFunc(binds, func(b any) bool { return strings.HasSuffix(b.(string), ":/data") })
	for _, m := range host["Mounts"].([]any) {
		delete(m.(map[string]any), "Source")
	}
	for _, m := range same["Mounts"].([]any) {
		delete(m.(map[string]any), "Mode") // z where it is bound
	}
	for _, n := range same["NetworkSettings"].(map[string]any)["Networks"].(map[string]any) {
		if list, ok := n.(map[string]any)["Aliases"].([]any); ok {
			slices.SortFunc(list, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		}
	}
	return same
}

func command(one map[string]any) string {
	return fmt.Sprint(one["Config"].(map[string]any)["Cmd"])
}

func TestE2EContainer(t *testing.T) {
	t.Parallel()
	m := boot(t, "docker/boot.sh", "serve", []byte(serveScript), "docker", "image", "inspect", "empty")
	admin := boxed{&service{machine: m, t: t}}
	admin.docker("network", "create", "--subnet", "172.30.0.0/24", "front")
	admin.docker("network", "create", "back")
	t.Cleanup(func() { // control groups are the machine's own
		admin.output("sh", "-c", `docker rm --force --volumes $(docker ps --all --quiet); rmdir /sys/fs/cgroup/*/docker /sys/fs/cgroup/docker; true`)
	})
	for _, own := range []bool{false, true} {
		t.Run(fmt.Sprintf("kept, own network %v", own), func(t *testing.T) {
			t.Parallel()
			port := 8001
			if own {
				port = 8003
			}
			b := m.container(t, port, own)
			testKept(t, b)
			if runs := command(b.inspect()); !strings.HasSuffix(runs, `$m "%i"]`) {
				t.Errorf("it runs %s", runs)
			}
		})
	}
	testPutBack(t, func(t *testing.T, _, port int) managed { return m.container(t, port, false) })
	t.Run("compose", func(t *testing.T) {
		t.Parallel()
		if os.Getenv("ROOFTOP_E2E_COMPOSE") == "" {
			t.Skip("NOT CHECKED: Docker Compose: .ci/install-compose builds it")
		}
		t.Run("kept", func(t *testing.T) {
			t.Parallel()
			testKept(t, m.compose(t, 8051))
		})
		testPutBack(t, func(t *testing.T, _, port int) managed { return m.compose(t, port+50) })
	})
}
