package proc

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Server is a vLLM server found among the processes of this machine. It may be
// printed in any way: secrets are only in Launch, which hides them itself.
type Server struct {
	// Addr is where it listens, as the server sees it: within a container, the
	// container's address and port.
	Addr        netip.AddrPort
	ListenerPID int // owner of the listening socket
	LaunchPID   int // process whose command line started the server
	Tree        []Process
	Started     time.Time // of the launch process, to a second or so

	// Launch is the launch configuration, config file and environment included;
	// nil where no process of the server shows a vLLM command line.
	Launch     *launch.Config
	ConfigPath string            // of the --config file, as the server names it; "" without one
	Env        map[string]string // what is known to matter of the environment; secrets are redacted
	Cwd        string            // working directory of the launch process, "" where unreadable

	Missing []Gap    // what could not be read, and what that switches off
	Notes   []string // what else to know: a config file changed since, another server on the port

	fs FS
}

// Gap is something that could not be read: what, why with the one thing to do,
// and what is unknown for it. It converts to the engine's Missing.
type Gap struct {
	What   string
	Reason string
	Effect string
}

// view is a Server without its methods, for formatting.
type view Server

// String names the server in one line, without its environment.
func (s Server) String() string {
	if s.Launch == nil {
		return fmt.Sprintf("process %d at %s", s.ListenerPID, s.Addr)
	}
	return fmt.Sprintf("process %d at %s: %s", s.LaunchPID, s.Addr, s.Launch)
}

// Format writes [Server.String], or with %+v and %#v every field, secrets
// redacted.
func (s Server) Format(f fmt.State, verb rune) {
	if verb == 'v' && (f.Flag('+') || f.Flag('#')) {
		v := view(s)
		v.fs = FS{}
		_, _ = fmt.Fprintf(f, "%+v", v)
		return
	}
	_, _ = io.WriteString(f, s.String())
}

// Identity distinguishes this run of the server from the next: launch process
// and its start in clock ticks since boot.
func (s *Server) Identity() string {
	for _, p := range s.Tree {
		if p.PID == s.LaunchPID {
			return fmt.Sprintf("%d@%d", p.PID, p.Ticks)
		}
	}
	return strconv.Itoa(s.LaunchPID)
}

// Alive tells whether the same process still runs as when the server was found:
// after a restart it does not, even where the PID is used again.
func (s *Server) Alive() bool {
	return len(s.Tree) > 0 && s.fs.condition(s.Tree[0]) != "gone"
}

// Health lists the processes of the server that no longer work.
func (s *Server) Health() []Problem { return s.fs.Health(s.Tree) }

// Usage reads what the server's processes have used so far.
func (s *Server) Usage() []Usage { return s.fs.Usage(s.Tree) }

// Environ is the whole environment of the launch process, for an exact restart.
// It holds secrets: keep it in memory or in a file that only its owner reads.
func (s *Server) Environ() ([]string, error) {
	env, err := s.fs.environ(s.LaunchPID)
	if err != nil {
		return nil, fmt.Errorf("read environment of process %d: %w", s.LaunchPID, err)
	}
	return env, nil
}

// server reads all there is about the server whose socket the process owns.
func (f FS) server(listener int, addr netip.AddrPort) *Server {
	s := &Server{Addr: addr, ListenerPID: listener, LaunchPID: listener, fs: f}
	argv, pid := f.launchOf(listener)
	if pid != 0 {
		s.LaunchPID = pid
	}
	tree, err := f.Tree(s.LaunchPID)
	if err != nil {
		s.miss("process tree", err, "the states of the server's processes and its GPUs are unknown")
	}
	s.Tree = tree
	if len(tree) > 0 {
		s.Started = tree[0].Started
	}
	s.Cwd, _ = os.Readlink(f.path(s.LaunchPID, "cwd"))
	env := s.readEnv()
	s.Env = visible(env)
	if pid == 0 {
		s.Missing = append(s.Missing, Gap{
			What:   "launch command",
			Reason: fmt.Sprintf("neither process %d nor a parent of it has a vLLM command line", listener),
			Effect: "flags come from the page, from rooftop's own flags, or are vLLM's defaults",
		})
		return s
	}
	s.parse(argv, env)
	return s
}

// miss records something that could not be read.
func (s *Server) miss(what string, err error, effect string) {
	reason := err.Error()
	if denied(err) {
		uid := s.fs.uid(s.LaunchPID)
		reason = fmt.Sprintf("process %d belongs to user %d: run rooftop as that user or as root", s.LaunchPID, uid)
	}
	s.Missing = append(s.Missing, Gap{What: what, Reason: reason, Effect: effect})
}

// parse reads the command line and the config file that it names.
func (s *Server) parse(argv []string, env map[string]string) {
	cfg, err := launch.Parse(argv, env, nil)
	if err != nil {
		s.miss("launch command", err, "flags come from the page or are vLLM's defaults")
		return
	}
	s.Launch, s.ConfigPath = cfg, cfg.ConfigPath()
	if s.ConfigPath != "" {
		s.parseConfig(argv, env)
	}
	s.Notes = append(s.Notes, s.Launch.Notes()...)
}

func (s *Server) parseConfig(argv []string, env map[string]string) {
	const effect = "settings of the config file are unknown and count as vLLM's defaults"
	text, changed, err := s.fs.serverFile(s.LaunchPID, s.Cwd, s.ConfigPath, launch.MaxConfigBytes)
	if err != nil {
		s.miss("config file "+s.ConfigPath, err, effect)
		return
	}
	cfg, err := launch.Parse(argv, env, text)
	if err != nil {
		s.miss("config file "+s.ConfigPath, err, effect)
		return
	}
	s.Launch = cfg
	if !s.Started.IsZero() && changed.After(s.Started.Add(2*time.Second)) {
		s.Notes = append(s.Notes, fmt.Sprintf("%s changed after the server started: its settings may not be the running ones", s.ConfigPath))
	}
}

// launchOf finds the process that was started with the vLLM command line: the
// given one or the nearest ancestor, and from there as long as the parent has
// one too, because forked children keep their parent's. A wrapper around the
// command (a shell, uv, a container's init) does not count where the server
// itself has a command line.
func (f FS) launchOf(pid int) (argv []string, launchPID int) {
	var wrapper []string
	wrapperPID := 0
	for _, p := range append([]int{pid}, f.ancestors(pid)...) {
		if p == f.self {
			break // rooftop's own command line may hold the server's
		}
		line, err := f.argv(p)
		if err != nil || len(line) == 0 {
			break
		}
		cfg, err := launch.Parse(line, nil, nil)
		switch {
		case err == nil && cfg.Direct():
			argv, launchPID = line, p
		case launchPID != 0:
			return argv, launchPID
		case err == nil && wrapperPID == 0:
			wrapper, wrapperPID = line, p
		}
	}
	if launchPID == 0 {
		return wrapper, wrapperPID
	}
	return argv, launchPID
}

// relevant are the beginnings of environment variables that say something about
// the launch.
var relevant = []string{
	"VLLM_", "CUDA_", "NVIDIA_", "HIP_", "ROCR_", "ASCEND_", "ZE_AFFINITY_MASK", "GPU_DEVICE_ORDINAL", "NCCL_", "OMP_NUM_THREADS",
	"HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_TOKEN", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE", "XDG_CACHE_HOME", "HOME",
	"PROMETHEUS_MULTIPROC_DIR", "TENSOR_PARALLEL_SIZE", "DTYPE", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF",
}

// readEnv reads the relevant part of the launch process's environment.
func (s *Server) readEnv() map[string]string {
	all, err := s.fs.environ(s.LaunchPID)
	if err != nil {
		s.miss("environment", err, "VLLM_* variables and CUDA_VISIBLE_DEVICES are unknown")
		return nil
	}
	env := launch.Environ(all)
	maps.DeleteFunc(env, func(name, _ string) bool {
		return !slices.ContainsFunc(relevant, func(prefix string) bool {
			return name == prefix || strings.HasSuffix(prefix, "_") && strings.HasPrefix(name, prefix)
		})
	})
	return env
}

// visible is env with its secrets redacted.
func visible(env map[string]string) map[string]string {
	out := maps.Clone(env)
	for name, value := range out {
		out[name] = launch.RedactVariable(name, value)
	}
	return out
}

// MarshalJSON writes the fields, secrets redacted.
func (s Server) MarshalJSON() ([]byte, error) { return json.Marshal(view(s)) }
