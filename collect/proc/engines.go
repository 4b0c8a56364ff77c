package proc

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Roles of engines other than vLLM.
const (
	AllInOne    Role = "server"      // answers HTTP and runs the model in one process
	Detokenizer Role = "detokenizer" // turns tokens into text
	// Program is the topmost process that is not a wrapper and not known to serve.
	Program Role = "program"
)

// ownTitle reports whether a process title is one that an engine sets.
func ownTitle(title string) bool {
	return strings.HasPrefix(title, "VLLM::") || strings.HasPrefix(title, "sglang::")
}

// wrappers are programs that start a server and wait for it: shells, container inits
// and launch tools.
var wrappers = []string{
	"bash", "sh", "dash", "zsh", "ash", "ksh", "fish", "busybox", "env", "nohup", "setsid", "nice", "timeout", "stdbuf", "script", "sudo", "su",
	"tini", "dumb-init", "docker-init", "catatonit", "s6-svscan", "supervisord", "systemd", "screen", "tmux", "numactl", "taskset", "strace", "uv",
}

// sglangTitles are the process titles that SGLang sets after "sglang::"
// (setproctitle in python/sglang/srt/managers: scheduler.py,
// detokenizer_manager.py, data_parallel_controller.py, multi_tokenizer_mixin.py).
// Its scheduler runs the model too, one for each GPU.
var sglangTitles = []struct {
	prefix string
	role   Role
}{
	{"scheduler", EngineCore}, {"detokenizer", Detokenizer}, {"data_parallel_controller", Coordinator}, {"tokenizer_worker", APIServer},
	{"http_server", APIServer}, {"gpu_worker", Worker},
}

// Roles sets the role of each process of a tree, which must list parents before
// children. It assigns vLLM's roles as [FS.Tree] does, even if wrappers stand above the
// launch process, and those of llama-server, Ollama, SGLang and others by name. For any
// other engine the listener, the PID that listens on the server's port (0 if unknown),
// is the server. Roles never guesses a server: the first process that is not a
// wrapper may be any program and becomes [Program].
func (f processes) Roles(tree []Process, listener int) {
	role := map[int]Role{}
	vllm := map[int]int{} // PID to the index of the launch process above it
	parts := map[int][]int{}
	topped := false // the top program is known
	for i := range tree {
		p := &tree[i]
		top, inside := vllm[p.PPID]
		if !inside && f.isVLLMLaunch(p.PID) {
			top, inside = i, true
		}
		if inside {
			vllm[p.PID] = top
			parts[top] = append(parts[top], i)
			topped = true
			continue
		}
		switch p.Role = f.otherRole(*p, role[p.PPID]); {
		case p.Role != Other:
		case p.PID == listener:
			p.Role = AllInOne
		case !topped && !f.isWrapper(*p):
			p.Role = Program
		}
		topped = topped || p.Role == AllInOne || p.Role == APIServer || p.Role == Program
		role[p.PID] = p.Role
	}
	for _, members := range parts {
		var part []Process
		for _, i := range members {
			part = append(part, tree[i])
		}
		f.assign(part)
		for n, i := range members {
			tree[i].Role = part[n].Role
		}
	}
	markLaunchers(tree)
	if len(tree) > 0 && tree[0].Role == Other {
		tree[0].Role = Program // only a shell
	}
}

// isVLLMLaunch reports whether a process has vLLM's own command line, not that of a
// wrapper around it.
func (f processes) isVLLMLaunch(pid int) bool {
	argv, err := f.Argv(pid)
	if err != nil || !launch.Likely(argv) {
		return false
	}
	cfg, err := launch.Parse(argv, nil, nil)
	return err == nil && cfg.Direct() && cfg.Engine() == catalog.VLLM
}

// otherRole returns the role of a process that does not belong to a vLLM launch.
func (f processes) otherRole(p Process, parent Role) Role {
	argv, _ := f.Argv(p.PID)
	name := p.Title
	if name == "" {
		name = p.Comm
	}
	if after, ok := strings.CutPrefix(name, "sglang::"); ok {
		for _, known := range sglangTitles {
			// The kernel cuts a name to 15 characters, of which "sglang::" leaves 7.
			if strings.HasPrefix(after, known.prefix) || len(after) >= 7 && strings.HasPrefix(known.prefix, after) {
				return known.role
			}
		}
		return Other
	}
	program, line := programOf(p, argv), strings.Join(argv, " ")
	switch {
	case strings.Contains(line, "resource_tracker") || strings.Contains(line, "forkserver"):
		return ResourceTracker
	case strings.HasPrefix(name, "VLLM::"):
		return f.role(p, false, parent)
	case strings.HasPrefix(program, "ollama") && slices.Contains(argv, "serve"):
		return APIServer
	case parent == APIServer && (strings.HasPrefix(program, "ollama") || strings.HasPrefix(program, "llama-server")):
		return Worker // one for each model: "ollama runner", "ollama_llama_server"
	case strings.HasPrefix(program, "llama-server"), servesModels(argv):
		return AllInOne
	case pythonLike(p.Comm, argv) && (strings.Contains(line, "sglang.launch_server") || strings.Contains(line, "sglang serve")):
		return APIServer
	}
	return Other
}

// programOf returns the base name of a process's program.
func programOf(p Process, argv []string) string {
	if len(argv) > 0 && argv[0] != "" {
		return filepath.Base(argv[0])
	}
	return p.Comm
}

// isWrapper reports whether a process only starts a program and waits for it. The name
// of a login shell begins with a dash ("-bash").
func (f processes) isWrapper(p Process) bool {
	argv, _ := f.Argv(p.PID)
	return slices.Contains(wrappers, strings.TrimPrefix(programOf(p, argv), "-"))
}

// servers lists programs and Python modules that serve models, by words of their command
// lines: "python -m llama_cpp.server", "lmdeploy serve api_server".
var servers = []struct{ name, then string }{
	{"llama_cpp.server", ""}, {"mlx_lm.server", ""}, {"mlx_lm", "server"}, {"lmdeploy", "serve"}, {"transformers", "serve"},
	{"aphrodite", "run"}, {"trtllm-serve", ""}, {"tritonserver", ""},
}

// servesModels reports whether a command line runs a known server, directly or through an
// interpreter.
func servesModels(argv []string) bool {
	if len(argv) > 0 && slices.Contains(wrappers, filepath.Base(argv[0])) {
		return false // a wrapper's command line contains the server's
	}
	for i, word := range argv[:min(len(argv), 4)] {
		for _, s := range servers {
			if filepath.Base(word) == s.name && (s.then == "" || i+1 < len(argv) && strings.HasPrefix(argv[i+1], s.then)) {
				return true
			}
		}
	}
	return false
}

// markLaunchers sets the role Launcher for helpers that have descendants with a role, and
// for programs that have a server below them.
func markLaunchers(tree []Process) {
	above, serving := map[int]bool{}, map[int]bool{}
	for i := len(tree) - 1; i >= 0; i-- {
		p := &tree[i]
		if p.Role == Other && above[p.PID] || p.Role == Program && serving[p.PID] {
			p.Role = Launcher
		}
		switch p.Role {
		case Other, ResourceTracker:
			continue
		case Program:
		case Launcher:
			serving[p.PPID] = serving[p.PPID] || serving[p.PID]
		default:
			serving[p.PPID] = true
		}
		above[p.PPID] = true
	}
}
