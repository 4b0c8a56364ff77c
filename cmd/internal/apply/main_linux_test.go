package apply

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// The test program is also what rooftop starts: a gate, and, called as vllm, a
// server that behaves as its flags and the variable FAKE say.
func TestMain(m *testing.M) {
	faultyLauncher()
	launcher.BecomeServer()
	switch filepath.Base(os.Args[0]) {
	case "vllm":
		fakeServer()
		os.Exit(0)
	case "VLLM::EngineCore":
		time.Sleep(hang)
		os.Exit(0)
	case "halfdead":
		halfDead()
	case "straggler":
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
		time.Sleep(hang)
		os.Exit(0)
	}
	_ = flag.Set("test.parallel", "16") // they wait more than they work
	flag.Parse()
	os.Exit(m.Run())
}

// hang is a time that only a hang reaches, however slow the machine is.
const hang = 3 * time.Minute

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(hang); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", hang, what)
		}
	}
}

// fakeFile is the file beside the fake server's program that says how the server behaves, where the variable
// FAKE does not.
const fakeFile = "fake"

// A fake server is its program's first thread, so that this can end alone.
func init() {
	if filepath.Base(os.Args[0]) == "vllm" {
		runtime.LockOSThread()
	}
}

// Slots with which the fake server misbehaves.
const (
	slotsOutOfMemory = 601 + iota
	slotsRefused
	slotsHang      // before /health
	slotsHangAsked // on completions
	slotsSilent    // ends without a word
	slotsOther     // answers other words
)

// crash is the signal at which a fake server crashes.
const crash = syscall.SIGUSR1

// fakeState is what a fake server says about itself.
type fakeState struct {
	PID    int
	Args   []string
	Env    []string
	Cwd    string
	Config string
	Nice   int
	Umask  int
	Files  [2]uint64
	Score  string
	CPUs   int
	Group  int
	Std    [3]string
}

func fakeServer() {
	beside, _ := os.ReadFile(filepath.Join(filepath.Dir(os.Args[0]), fakeFile))
	behaves := strings.Split(os.Getenv("FAKE")+","+string(beside), ",")
	fake := func(what string) bool { return slices.Contains(behaves, what) }
	var text []byte
	c, err := launch.Parse(os.Args, launch.Environ(os.Environ()), nil)
	if err == nil && c.ConfigPath() != "" {
		if text, err = os.ReadFile(c.ConfigPath()); err == nil {
			c, err = launch.Parse(os.Args, launch.Environ(os.Environ()), text)
		}
	}
	if err != nil {
		fmt.Println("vllm serve: error:", err)
		os.Exit(2)
	}
	at := proc.ListenAddr(c)
	slots, _, _ := c.Int("max_num_seqs")
	fmt.Println("INFO 11-21 10:00:00 [api_server.py:1] vLLM API server version 0.fake")
	switch slots {
	case slotsOutOfMemory:
		fmt.Println("(EngineCore_DP0 pid=7) ERROR 11-21 10:00:00 [core.py:700] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. token=hf_abcdefghijklmnopqrstuvwxyz")
		fmt.Println("RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}")
		os.Exit(1)
	case slotsRefused:
		fmt.Println("vllm serve: error: unrecognized arguments: --no-such-flag")
		os.Exit(2)
	case slotsSilent:
		if to := os.Getenv("FAKE_LEADS"); to != "" { // the process that restores its config file
			_ = os.Remove(c.ConfigPath())
			_ = os.Symlink(to, c.ConfigPath())
		}
		os.Exit(3)
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, crash)
	if fake("absent") { // serves elsewhere
		<-signals
		os.Exit(0)
	}
	parent := os.Getenv("FAKE_DAEMON")
	for parent != "" && strconv.Itoa(os.Getppid()) == parent { // a daemon serves once its parent has gone
		time.Sleep(time.Millisecond)
	}
	if fake("daemon") && parent == "" {
		self, _ := os.Executable()
		child := &exec.Cmd{Path: self, Args: os.Args, Env: append(os.Environ(), fmt.Sprintf("FAKE_DAEMON=%d", os.Getpid())), SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
		if err := child.Start(); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	core := &exec.Cmd{Args: []string{"VLLM::EngineCore"}}
	if fake("hollow") {
		core.Path, _ = os.Executable()
		if err := core.Start(); err != nil {
			panic(err)
		}
	}
	if fake("straggler") {
		self, _ := os.Executable()
		child := &exec.Cmd{Path: self, Args: []string{"straggler"}, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
		if err := child.Start(); err != nil {
			panic(err)
		}
	}
	if slots == slotsHang {
		<-signals
		os.Exit(0)
	}
	listener, err := net.Listen("tcp", at.String())
	for fake("late") && err != nil { // imports until the port is free, as a vLLM may
		time.Sleep(10 * time.Millisecond)
		listener, err = net.Listen("tcp", at.String())
	}
	if err != nil {
		fmt.Println("OSError: [Errno 98] error while attempting to bind on address: address already in use")
		os.Exit(1)
	}
	code := 0
	for _, one := range behaves {
		_, _ = fmt.Sscanf(one, "refuses-%d", &code)
	}
	go func() { _ = http.Serve(listener, fakeHandler(slots, code, string(text))) }()
	for s := range signals {
		switch {
		case s == crash:
			fmt.Println("RuntimeError: CUDA error: an illegal memory access was encountered")
			os.Exit(1)
		case fake("hollow") && s == syscall.SIGTERM: // waits for connections to close
			_ = core.Process.Kill()
			_ = core.Wait()
		case fake("first-thread-first"):
			go func() {
				time.Sleep(500 * time.Millisecond)
				os.Exit(0)
			}()
			_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
		case fake("finishes"):
			time.Sleep(testGrace)
			fmt.Println("finished its requests")
			os.Exit(0)
		case s == syscall.SIGINT, !fake("ignore-term"):
			os.Exit(0)
		}
	}
}

// fakeHandler answers completions with the status refuses, if that is not 0.
func fakeHandler(slots, refuses int, config string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"data":[{"id":"fake"}]}`)
	})
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "vllm:generation_tokens_total{engine=\"0\"} 7\n")
		// It can pretend to be restarted: as often as that file has bytes.
		if info, err := os.Stat(os.Getenv("FAKE_STARTS")); err == nil {
			fmt.Fprintf(w, "process_start_time_seconds %d\n", 1_790_000_000+info.Size())
		}
	})
	mux.HandleFunc("/fake", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(itself(config))
	})
	mux.HandleFunc("/v1/completions", func(w http.ResponseWriter, r *http.Request) {
		if refuses != 0 {
			http.Error(w, `{"error":"refused"}`, refuses)
			return
		}
		if slots == slotsHangAsked {
			<-r.Context().Done()
			return
		}
		if key := os.Getenv("VLLM_API_KEY"); key != "" && r.Header.Get("Authorization") != "Bearer "+key {
			http.Error(w, `{"error":"Unauthorized"}`, http.StatusUnauthorized)
			return
		}
		fakeCompletion(w, r, slots)
	})
	return mux
}

func fakeCompletion(w http.ResponseWriter, r *http.Request, slots int) {
	var asked struct {
		Stream   bool
		Logprobs *int
		Prompt   string
	}
	_ = json.NewDecoder(r.Body).Decode(&asked)
	second, logprob := "two", -0.5
	if slots == slotsOther {
		second, logprob = "three", -0.75
	}
	if asked.Stream {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"one\"}]}\n\ndata: {\"choices\":[{\"text\":\"two\",\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n")
		return
	}
	fmt.Fprintf(w, `{"choices":[{"text":"one %s","logprobs":{"tokens":["one","%s"],"token_logprobs":[%v,-1]}}]}`, second, second, logprob)
}

// itself is what a process sees of itself.
func itself(config string) fakeState {
	s := fakeState{PID: os.Getpid(), Args: os.Args, Env: os.Environ(), Config: config, Group: syscall.Getpgrp()}
	s.Cwd, _ = os.Getwd()
	raw, _ := unix.Getpriority(unix.PRIO_PROCESS, 0)
	s.Nice = 20 - raw
	s.Umask = syscall.Umask(0)
	syscall.Umask(s.Umask)
	text, _ := os.ReadFile("/proc/self/limits")
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); strings.HasPrefix(line, "Max core file size") {
			for i := range s.Files {
				s.Files[i], _ = strconv.ParseUint(fields[4+i], 10, 64)
			}
		}
	}
	score, _ := os.ReadFile("/proc/self/oom_score_adj")
	s.Score = strings.TrimSpace(string(score))
	var set unix.CPUSet
	_ = unix.SchedGetaffinity(0, &set)
	s.CPUs = set.Count()
	for i := range s.Std {
		s.Std[i], _ = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", i))
	}
	return s
}

// program is the fake server's program, called vllm.
func program(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	path := filepath.Join(t.TempDir(), "vllm")
	if err := os.Link(self, path); err != nil {
		data, err := os.ReadFile(self)
		must(t, err)
		must(t, programtest.Write(path, data))
	}
	return path
}

// command is the command line of a fake server that listens at an address.
func command(program string, at netip.AddrPort, args ...string) []string {
	return append([]string{program, "serve", "m", "--host", at.Addr().String(), "--port", strconv.Itoa(int(at.Port()))}, args...)
}

// stateOf asks a fake server about itself.
func stateOf(t *testing.T, at netip.AddrPort) fakeState {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: hang}
	resp, err := client.Get("http://" + at.String() + "/fake")
	must(t, err)
	defer resp.Body.Close()
	var s fakeState
	must(t, json.NewDecoder(resp.Body).Decode(&s))
	return s
}

// gone reports whether a process ended, whether or not someone reaps it.
func gone(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return strings.HasPrefix(rest, "Z")
}
