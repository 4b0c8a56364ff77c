//go:build e2e && linux

package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
)

// A server started by a unit of systemd, with a real systemd in separate namespaces and simulated servers, one for
// each instance of a template: its number is the port. ROOFTOP_E2E_KILLS is the number of times that a rooftop is
// killed, for the long version.

// machine is a systemd or a Docker in separate namespaces.
type machine struct {
	pid    int    // of its first process
	dir    string // seen by the same name from within
	binary string
}

// unitText is a template of servers with too few slots. An instance above 9000 does not start while a
// change is on trial.
const unitText = `[Unit]
Description=vLLM on port %i
StartLimitBurst=3
[Service]
Environment=HOME=/root "MODEL=meta-llama/Llama-3.1-8B-Instruct"
ExecStartPre=/bin/sh -c 'test %i -lt 9000 || ! test -e /run/systemd/system/vllm@%i.service.d/zzz-rooftop-trial.conf || { echo "ValueError: 100% of the memory is taken" >&2; exit 3; }'
ExecStart=BINARY sim "meta-llama/Llama-3.1-8B-Instruct" --port %i --max-num-seqs 4 --sim-gpu "NVIDIA A100-SXM4-80GB" --max-model-len 4096 --sim-startup-time 300ms --served-model-name "$$m %%i"
Restart=always
RestartSec=100ms
`

// bootWithin is how long a machine may take to be up; a node of Kubernetes takes half a minute.
const bootWithin = 2 * time.Minute

// boot runs a script of testdata, with the machine's folder, in new namespaces until a command on the machine reports
// that it is up. The folder "shared" in it has rooftop and a file for the script.
func boot(t *testing.T, script, file string, text []byte, up ...string) *machine {
	t.Helper()
	path := built(t)
	m := &machine{dir: t.TempDir()}
	shared := filepath.Join(m.dir, "shared")
	m.binary = filepath.Join(shared, "rooftop")
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.Mkdir(shared, 0o755)
	}
	if err == nil {
		err = programtest.Write(m.binary, data)
	}
	if err == nil {
		err = programtest.Write(filepath.Join(shared, file), bytes.ReplaceAll(text, []byte("BINARY"), []byte(m.binary)))
	}
	must(t, err)
	log, err := os.Create(filepath.Join(m.dir, "boot.log"))
	must(t, err)
	cmd := exec.Command("unshare", "-m", "-n", "-p", "-f", "--kill-child", "--mount-proc", "bash", "testdata/"+script, m.dir)
	cmd.Stdout, cmd.Stderr = log, log
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); log.Close() })
	children := fmt.Sprintf("/proc/%d/task/%d/children", cmd.Process.Pid, cmd.Process.Pid)
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		text, _ := os.ReadFile(children)
		m.pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		if m.pid != 0 {
			if m.command(up...).Run() == nil {
				return m
			}
		}
		if time.Since(began) > bootWithin {
			said, _ := os.ReadFile(log.Name())
			t.Fatalf("%s: it is not up: %s", script, said)
		}
	}
}

// command returns a command that runs on the machine, which finds Docker and Compose.
func (m *machine) command(argv ...string) *exec.Cmd {
	path := "PATH=" + os.Getenv("ROOFTOP_E2E_DOCKER") + "/root/usr/bin:" + os.Getenv("ROOFTOP_E2E_COMPOSE") + ":" + os.Getenv("PATH")
	return exec.Command("nsenter", append([]string{"-t", strconv.Itoa(m.pid), "-m", "-n", "-p", "-r", "-w", "env", "HOME=/root", "XDG_RUNTIME_DIR=/run/user/0", path}, argv...)...)
}

// service is one unit of a machine, with clients that need more than its slots.
type service struct {
	*machine
	t    *testing.T
	port int
	user bool // it belongs to the service manager of a user
}

func (m *machine) serve(t *testing.T, port int, user bool) *service {
	t.Helper()
	s := &service{m, t, port, user}
	if user {
		s.output("systemctl", "start", "user@0.service")
		s.output("mkdir", "-p", "/root/.config/systemd/user")
		s.output("cp", "/etc/systemd/system/vllm@.service", "/root/.config/systemd/user")
		s.systemctl("daemon-reload")
	}
	s.systemctl("start", s.name())
	s.load(12, "64", "32-64")
	return s
}

// load waits until the server answers (a proxy of Docker accepts connections earlier) and starts its clients, whose
// prompts and outputs have the given numbers of tokens.
func (s *service) load(clients int, prompt, output string) {
	s.t.Helper()
	const answers = `trap "" PIPE; until exec 3<>/dev/tcp/127.0.0.1/%d && printf 'GET /health HTTP/1.0\r\n\r\n' >&3 && read -r line <&3; do sleep 0.1; done`
	s.output("timeout", "120", "bash", "-c", fmt.Sprintf(answers, s.port))
	load := s.command("sh", "-c", fmt.Sprintf("until %s load --url %s --clients %d --prompt-tokens %s --output-tokens %s --duration 0 >/dev/null 2>&1; do sleep 0.2; done", s.binary, s.url(), clients, prompt, output))
	must(s.t, load.Start())
	s.t.Cleanup(func() {
		_ = s.command("pkill", "-f", "until .*"+s.url()).Run()
		_ = s.command("pkill", "-f", "load --url "+s.url()+" ").Run()
		_ = load.Wait()
	})
}

// url is the server's address within its machine.
func (s *service) url() string { return fmt.Sprintf("http://127.0.0.1:%d", s.port) }

func (s *service) name() string { return fmt.Sprintf("vllm@%d.service", s.port) }

// output runs a command on the machine that must succeed.
func (s *service) output(argv ...string) string {
	s.t.Helper()
	out, err := s.command(argv...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return string(out)
}

// systemctl runs systemctl with the service's manager.
func (s *service) systemctl(args ...string) string {
	s.t.Helper()
	if s.user {
		args = append([]string{"--user"}, args...)
	}
	return s.output(append([]string{"systemctl"}, args...)...)
}

// rooftop returns a command of rooftop on the machine.
func (s *service) rooftop(args ...string) *exec.Cmd {
	return s.command(append([]string{"XDG_STATE_HOME=" + filepath.Join(s.dir, "shared", strconv.Itoa(s.port)), s.binary}, args...)...)
}

func (s *service) tune(further ...string) *exec.Cmd {
	return s.rooftop(append([]string{"tune", "--auto", "--json", "--no-report", "--restart-in-place", "--url", s.url(), "--duration", "8s", "--longest", "120s", "--start-timeout", "90s", "--max-restarts", "6"}, further...)...)
}

func (s *service) recover(int) *exec.Cmd { return s.rooftop("recover", "--yes") }

func (s *service) address() string { return s.url() }

// files are the files of the unit, as systemd lists them.
func (s *service) files() string { return s.systemctl("cat", s.name()) }

// unitState is a unit's files, and the command line that runs.
type unitState struct{ Files, Argv string }

// state checks that the server runs what the unit's files say.
func (s *service) state() any {
	s.t.Helper()
	if got := s.systemctl("show", "-P", "NeedDaemonReload", s.name()); strings.TrimSpace(got) != "no" {
		s.t.Error("systemd has not read the unit's files")
	}
	if left, _ := s.command("find", "/run/systemd/system", "/run/user", "-path", "*/"+s.name()+".d/*").Output(); len(left) > 0 {
		s.t.Errorf("left of a trial: %s", left)
	}
	pid := strings.TrimSpace(s.systemctl("show", "-P", "MainPID", s.name()))
	argv := strings.ReplaceAll(strings.TrimRight(s.output("cat", "/proc/"+pid+"/cmdline"), "\x00"), "\x00", " ")
	_, start, _ := strings.Cut(s.systemctl("show", "-P", "ExecStart", s.name()), "argv[]=")
	start, _, _ = strings.Cut(start, " ;")
	if want := strings.ReplaceAll(start, "$$", "$"); argv != want {
		s.t.Errorf("it runs %s, and its unit starts %s", argv, want)
	}
	return unitState{s.files(), argv}
}

func (s *service) keeps(before, after any) bool {
	was, is := before.(unitState), after.(unitState)
	return strings.HasPrefix(is.Files, was.Files) && strings.Contains(is.Files, s.name()+".d/zz-rooftop.conf") && is.Argv != was.Argv
}

func TestE2EUnit(t *testing.T) {
	t.Parallel()
	m := boot(t, "systemd/boot.sh", "vllm@.service", []byte(unitText), "sh", "-c", "systemctl is-system-running | grep -qE 'running|degraded'")
	for name, user := range map[string]bool{"of the system": false, "of a user": true} {
		t.Run("kept "+name, func(t *testing.T) {
			t.Parallel()
			port, dir := 8001, "/etc/systemd/system/"
			if user {
				port, dir = 8003, "/root/.config/systemd/user/"
			}
			s := m.serve(t, port, user)
			before := s.files()
			testKept(t, s)
			if argv := s.state().(unitState).Argv; strings.Contains(argv, "--max-num-seqs 4 ") || !strings.HasSuffix(argv, "--served-model-name $m %i") {
				t.Errorf("it runs %s", argv)
			}
			// Without the file the unit is as it was before.
			s.output("rm", "-r", dir+s.name()+".d")
			s.systemctl("daemon-reload")
			if s.files() != before {
				t.Errorf("without the drop-in file:\n%s", s.files())
			}
		})
	}
	testPutBack(t, func(t *testing.T, n, port int) managed { return m.serve(t, port, n%2 == 1) })
}

// untilEvent runs a rooftop that prints events, until one of a kind, and returns the remaining output.
func untilEvent(t *testing.T, cmd *exec.Cmd, kind string) (*exec.Cmd, io.Reader) {
	t.Helper()
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	must(t, err)
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := json.NewDecoder(out)
	for {
		var e autoEvent
		if err := lines.Decode(&e); err != nil {
			_ = cmd.Wait()
			t.Fatalf("it ended before %q: %v\n%s", kind, err, said.String())
		}
		if e.Type == kind {
			return cmd, io.MultiReader(lines.Buffered(), out)
		}
	}
}
