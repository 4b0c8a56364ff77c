//go:build e2e && linux

package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A server in a container, with a real Docker in namespaces of its own and simulated servers.
// ROOFTOP_E2E_DOCKER is what .ci/install-docker prints, ROOFTOP_E2E_COMPOSE what .ci/install-compose does,
// ROOFTOP_E2E_KILLS how often a rooftop is killed.

// boxed is a server that Docker runs.
type boxed struct{ *service }

// serveScript starts a server as an entrypoint does. One above port 9000 does not start with a change, and one
// above 7000 is slow with it.
const serveScript = `#!/bin/sh
case "$*" in *"--port 9"*"--max-num-seqs 4 "*) ;; *"--port 9"*) echo "ValueError: 100% of the memory is taken" >&2; exit 3 ;;
*"--port 7"*"--max-num-seqs 4 "*) ;; *"--port 7"*) set -- "$@" --sim-fault slow@0s+1hx9 ;; esac
exec "$@"
`

// container runs a server in a container with all that must not change, of a port within that is published
// as another, unless it is of the machine's own network.
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

// composeText is a service with too few slots. What the port means, serveScript says.
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

// compose runs a server that a service of Docker Compose makes.
func (m *machine) compose(t *testing.T, port int) boxed {
	t.Helper()
	b := boxed{&service{machine: m, t: t, port: port}}
	text := strings.NewReplacer("NAME", b.name(), "BINARY", m.binary, "SHARED", filepath.Join(m.dir, "shared"), "MODEL", simModel, "PORT", strconv.Itoa(port)).Replace(composeText)
	if err := errors.Join(os.MkdirAll(filepath.Dir(b.composeFile()), 0o755), os.WriteFile(b.composeFile(), []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
	b.output("docker-compose", "--file", b.composeFile(), "up", "--detach")
	b.load(12, "64", "32-64")
	return b
}

func (b boxed) composeFile() string {
	return filepath.Join(b.dir, "shared", b.name()+".compose", "compose.yaml")
}

// composed is the Compose file, the files beside it, and the command line of the container, which has to be what
// the file says.
func (b boxed) composed() (file string, beside int, argv string) {
	b.t.Helper()
	text, err := os.ReadFile(b.composeFile())
	files, errDir := os.ReadDir(filepath.Dir(b.composeFile()))
	if err = errors.Join(err, errDir); err != nil {
		b.t.Fatal(err)
	}
	said := b.output("docker-compose", "--file", b.composeFile(), "up", "--detach", "--dry-run")
	if strings.Contains(said, "Recreate") {
		b.t.Errorf("the container is not as the file says: %s", said)
	}
	return string(text), len(files) - 1, command(b.inspect())
}

func (m *machine) testCompose(t *testing.T) {
	t.Run("compose", func(t *testing.T) {
		t.Parallel()
		if os.Getenv("ROOFTOP_E2E_COMPOSE") == "" {
			t.Skip("NOT CHECKED: Docker Compose: .ci/install-compose builds it")
		}
		t.Run("kept", func(t *testing.T) {
			t.Parallel()
			b := m.compose(t, 8051)
			before, _, _ := b.composed()
			out, _ := b.tune().Output()
			after, beside, argv := b.composed()
			var slots string
			if _, rest, found := strings.Cut(argv, "--max-num-seqs "); found {
				slots, _, _ = strings.Cut(rest, " ")
			}
			if want := strings.Replace(before, `"4" # too few`, `"`+slots+`" # too few`, 1); slots == "4" || after != want || beside > 0 {
				t.Errorf("it runs %s, with %d files beside\n%s\n%s", argv, beside, cmp.Diff(want, after), told(eventsOf(t, out)))
			}
			t.Logf("kept %s", argv)
		})
		for i, end := range []string{"does not start", "interrupted", "killed", "killed later"} {
			t.Run(end, func(t *testing.T) {
				t.Parallel()
				b := m.compose(t, map[bool]int{true: 9051, false: 8052 + i}[i == 0])
				was, _, argv := b.composed()
				tune := b.tune()
				switch end {
				case "does not start":
					out, _ := tune.Output()
					if said := told(ofType(eventsOf(t, out), "error")); !strings.Contains(said, "ValueError: 100% of the memory is taken") {
						t.Errorf("no reason why it does not start:\n%s", told(eventsOf(t, out)))
					}
				case "interrupted":
					cmd, events := untilEvent(t, tune, "server-up")
					b.output("pkill", "-INT", "-f", "tune .*"+b.url())
					_, _ = io.Copy(io.Discard, events)
					_ = cmd.Wait()
				default:
					cmd, _ := untilEvent(t, tune, map[bool]string{true: "applying", false: "server-up"}[end == "killed"])
					after := time.Duration(rand.N(int64(2 * time.Second)))
					time.Sleep(after)
					b.output("pkill", "-KILL", "-f", "tune .*"+b.url())
					_ = cmd.Wait()
					if out, err := b.rooftop("recover", "--yes").CombinedOutput(); err != nil {
						t.Errorf("killed %v after %q: recover: %v\n%s", after, end, err, out)
					}
				}
				now, beside, runs := b.composed()
				if now != was || runs != argv || beside > 0 {
					t.Errorf("it is not as before: it runs %s, with %d files beside\n%s", runs, beside, cmp.Diff(was, now))
				}
			})
		}
	})
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
	if err := json.Unmarshal([]byte(b.docker("inspect", b.name())), &all); err != nil {
		b.t.Fatal(err)
	}
	one := all[0]
	delete(one, "State")
	settings := one["NetworkSettings"].(map[string]any)
	networks := settings["Networks"].(map[string]any)
	for _, network := range networks {
		for _, field := range []string{"EndpointID", "MacAddress", "IPAddress", "NetworkID"} {
			delete(network.(map[string]any), field)
		}
	}
	// Docker has no order of them.
	slices.SortFunc(one["Mounts"].([]any), func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	one["NetworkSettings"] = map[string]any{"Networks": networks, "Ports": settings["Ports"]}
	return one
}

// settled is what of a container stays when it is created again with another command line.
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
	// Those without a name of their own are bound by the name that they have.
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
				port = 8002
			}
			b := m.container(t, port, own)
			before := b.inspect()
			var said bytes.Buffer
			cmd := b.tune()
			cmd.Stderr = &said
			out, err := cmd.Output()
			events := eventsOf(t, out)
			if code := cmd.ProcessState.ExitCode(); code != 0 && code != 3 {
				t.Fatalf("%v: %s\n%s", err, said.String(), told(events))
			}
			after := b.inspect()
			if len(ofType(events, "kept")) == 0 || command(after) == command(before) || !strings.HasSuffix(command(after), `$m "%i"]`) {
				t.Errorf("it runs %s\n%s", command(after), told(events))
			}
			t.Logf("kept %s", command(after))
			if diff := cmp.Diff(settled(before), settled(after)); diff != "" {
				t.Errorf("more than its command line differs:\n%s", diff)
			}
		})
	}
	t.Run("does not start", func(t *testing.T) {
		t.Parallel()
		b := m.container(t, 9001, false)
		before := b.inspect()
		out, _ := b.tune().Output()
		events := eventsOf(t, out)
		if said := told(ofType(events, "error")); !strings.Contains(said, "ValueError: 100% of the memory is taken") {
			t.Errorf("no reason why it does not start:\n%s", told(events))
		}
		if diff := cmp.Diff(before, b.inspect()); diff != "" {
			t.Errorf("it is not as before:\n%s", diff)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		t.Parallel()
		b := m.container(t, 8003, false)
		before := b.inspect()
		cmd, events := b.until("server-up")
		b.output("pkill", "-INT", "-f", "tune .*"+b.url())
		_, _ = io.Copy(io.Discard, events)
		_ = cmd.Wait()
		if diff := cmp.Diff(before, b.inspect()); diff != "" {
			t.Errorf("it is not as before:\n%s", diff)
		}
	})
	m.testCompose(t)
	kills, _ := strconv.Atoi(os.Getenv("ROOFTOP_E2E_KILLS"))
	for i := range max(kills, 4) {
		t.Run(fmt.Sprintf("killed %d", i), func(t *testing.T) {
			t.Parallel()
			b := m.container(t, 8100+i, false)
			before := b.inspect()
			cmd, _ := b.until("applying")
			after := time.Duration(rand.N(int64(20 * time.Second)))
			if i%2 == 0 {
				after /= 20 // while it is being changed
			}
			time.Sleep(after)
			b.output("pkill", "-KILL", "-f", "tune .*"+b.url())
			_ = cmd.Wait()
			if out, err := b.rooftop("recover", "--yes").CombinedOutput(); err != nil {
				t.Errorf("killed %v after its first change began: recover: %v\n%s", after, err, out)
			}
			now := b.inspect()
			if diff := cmp.Diff(before, now); diff != "" && (command(now) == command(before) || cmp.Diff(settled(before), settled(now)) != "") {
				t.Errorf("killed %v after its first change began: it is not as before:\n%s", after, diff)
			}
		})
	}
}
