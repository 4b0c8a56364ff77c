package proc

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Server is a server of an engine found among the processes of this machine. It is safe to print
// with any verb: only Launch holds secrets, and it redacts them itself.
type Server struct {
	// Addr is where it listens, as the server sees it: within a container, the
	// container's address and port.
	Addr        netip.AddrPort
	ListenerPID int // owner of the listening socket
	LaunchPID   int // process whose command line started the server
	Tree        []Process
	Started     time.Time // start of the launch process, to a second or so

	// Launch is the launch configuration, config file and environment included;
	// nil if no process of the server has an engine's command line.
	Launch     *launch.Config
	ConfigPath string            // of the --config file, as the server names it; "" without one
	Env        map[string]string // environment variables that affect the launch; secrets are redacted
	Cwd        string            // working directory of the launch process, "" if unreadable

	Missing []engine.Missing // what could not be read, and what that disables
	Notes   []string         // other facts: the config file changed, the server runs in a container

	fs FS
}

// String names the server in one line, without its environment.
func (s Server) String() string {
	if s.Launch == nil {
		return fmt.Sprintf("%s at %s", s.Name(), s.Addr)
	}
	return fmt.Sprintf("%s at %s: %s", s.Name(), s.Addr, s.Launch)
}

// IsEngine reports whether a process of the server has the command line or a process title of an engine.
func (s *Server) IsEngine() bool {
	return s.Launch != nil || slices.ContainsFunc(s.Tree, func(p Process) bool { return ownTitle(p.Title) })
}

// Identity returns a text that distinguishes this run of the server from the next: the
// launch PID and its start in clock ticks since boot.
func (s *Server) Identity() string {
	for _, p := range s.Tree {
		if p.PID == s.LaunchPID {
			return fmt.Sprintf("%d@%d", p.PID, p.Ticks)
		}
	}
	return strconv.Itoa(s.LaunchPID)
}

// Alive reports whether the launch process that was found still runs. It is false after a
// restart, even if the PID is reused.
func (s *Server) Alive() bool {
	return len(s.Tree) > 0 && s.fs.brokenState(s.Tree[0]) != gone
}

// Health lists the processes of the server that no longer work.
func (s *Server) Health() []Problem { return s.fs.Health(s.Tree) }

// Environ returns the whole environment of the launch process, for an exact restart. It
// may hold secrets: keep it in memory or in a file that only its owner can read.
func (s *Server) Environ() ([]string, error) {
	env, err := s.fs.Environ(s.LaunchPID)
	if err != nil {
		return nil, fmt.Errorf("read environment of process %d: %w", s.LaunchPID, err)
	}
	return env, nil
}

// server reads everything about the server whose socket the listener owns.
func (f FS) server(listener int, addr netip.AddrPort) *Server {
	s := &Server{Addr: addr, ListenerPID: listener, LaunchPID: listener, fs: f}
	argv, pid := f.launchOf(listener)
	if pid != 0 {
		s.LaunchPID = pid
	}
	tree, err := f.Tree(s.LaunchPID)
	if err != nil {
		s.addMissing("process tree", err, "the states of the server's processes and its GPUs are unknown")
	}
	s.Tree = tree
	if len(tree) > 0 {
		s.Started = tree[0].Started
	}
	s.Cwd, _ = os.Readlink(f.path(s.LaunchPID, "cwd"))
	env := s.readEnv()
	s.Env = redacted(env)
	if pid == 0 {
		s.Missing = append(s.Missing, engine.Missing{
			What:   "launch command",
			Reason: fmt.Sprintf("neither process %d nor a parent of it has the command line of an inference server that rooftop knows", listener),
			Effect: engine.WithoutLaunch,
		})
		return s
	}
	s.parse(argv, env)
	return s
}

// addMissing records that something could not be read.
func (s *Server) addMissing(what string, err error, effect string) {
	reason := err.Error()
	if denied(err) {
		uid := s.fs.uid(s.LaunchPID)
		reason = fmt.Sprintf("process %d belongs to user %d: run rooftop as that user or as root", s.LaunchPID, uid)
	}
	s.Missing = append(s.Missing, engine.Missing{What: what, Reason: reason, Effect: effect})
}

// parse reads the command line and the config file that it names.
func (s *Server) parse(argv []string, env map[string]string) {
	cfg, err := launch.Parse(argv, env, nil)
	if err != nil {
		s.addMissing("launch command", err, engine.WithoutLaunch)
		return
	}
	s.Launch, s.ConfigPath = cfg, cfg.ConfigPath()
	if s.ConfigPath != "" {
		s.parseConfig(argv, env)
	}
	s.Notes = append(s.Notes, s.Launch.Notes()...)
}

func (s *Server) parseConfig(argv []string, env map[string]string) {
	const effect = "settings of the config file are unknown and count as the engine's defaults"
	text, changed, err := s.fs.serverFile(s.LaunchPID, s.Cwd, s.ConfigPath, launch.MaxConfigBytes)
	if err != nil {
		s.addMissing("config file "+s.ConfigPath, err, effect)
		return
	}
	cfg, err := launch.Parse(argv, env, text)
	if err != nil {
		s.addMissing("config file "+s.ConfigPath, err, effect)
		return
	}
	s.Launch = cfg
	if !s.Started.IsZero() && changed.After(s.Started.Add(2*time.Second)) {
		s.Notes = append(s.Notes, fmt.Sprintf("%s changed after the server started: its settings may not be the running ones", s.ConfigPath))
	}
}

// launchOf finds the process that was started with an engine's command line. It starts at
// the given process and climbs to the nearest ancestor with such a command line, and on
// while the parent has one too, because forked children keep their parent's. A wrapper
// around the command (a shell, uv, a container's init) counts only if the server itself
// has no command line. The PID is 0 if there is none.
func (f processes) launchOf(pid int) (argv []string, launchPID int) {
	var wrapper []string
	wrapperPID := 0
	for _, p := range append([]int{pid}, f.ancestors(pid)...) {
		if p == f.self {
			break // rooftop's own command line may contain the server's
		}
		line, err := f.Argv(p)
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

// relevantVariables are environment variables that affect the launch. An entry that ends
// with an underscore is a prefix.
var relevantVariables = []string{
	"VLLM_", "LLAMA_", "CUDA_", "NVIDIA_", "HIP_", "ROCR_", "ASCEND_", "ZE_AFFINITY_MASK", "GPU_DEVICE_ORDINAL", "NCCL_", "OMP_NUM_THREADS",
	"HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_TOKEN", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE", "XDG_CACHE_HOME", "HOME",
	"PROMETHEUS_MULTIPROC_DIR", "TENSOR_PARALLEL_SIZE", "DTYPE", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF",
}

// readEnv reads the relevant part of the launch process's environment.
func (s *Server) readEnv() map[string]string {
	all, err := s.fs.Environ(s.LaunchPID)
	if err != nil {
		s.addMissing("environment", err, "VLLM_* variables and CUDA_VISIBLE_DEVICES are unknown")
		return nil
	}
	env := launch.Environ(all)
	maps.DeleteFunc(env, func(name, _ string) bool {
		return !slices.ContainsFunc(relevantVariables, func(prefix string) bool {
			return name == prefix || strings.HasSuffix(prefix, "_") && strings.HasPrefix(name, prefix)
		})
	})
	return env
}

// redacted returns a copy of env with its secrets redacted.
func redacted(env map[string]string) map[string]string {
	out := maps.Clone(env)
	for name, value := range out {
		out[name] = launch.RedactVariable(name, value)
	}
	return out
}
