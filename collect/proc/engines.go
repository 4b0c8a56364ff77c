package proc

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Roles of other engines than vLLM.
const (
	AllInOne    Role = "server"      // answers HTTP and runs the model, all in one
	Detokenizer Role = "detokenizer" // turns tokens into text
	// Program is the topmost process that is no wrapper, where nobody knows that it
	// serves.
	Program Role = "program"
)

// wrappers start a server and wait: shells, and what containers have as init.
var wrappers = []string{
	"bash", "sh", "dash", "zsh", "ash", "ksh", "fish", "busybox", "env", "nohup", "setsid", "nice", "timeout", "stdbuf", "script", "sudo", "su",
	"tini", "dumb-init", "docker-init", "catatonit", "s6-svscan", "supervisord", "systemd", "screen", "tmux", "numactl", "taskset", "strace", "uv",
}

// sglangTitles are what SGLang's processes call themselves after "sglang::"
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

// Roles gives each process of a tree, parents before children, its role: for
// vLLM's as [FS.Tree] does, also where wrappers stand above its launch process;
// for llama-server, Ollama, SGLang and others by their names. Of any other engine the
// listener is the server, the process that listens on its port; 0 is unknown. A server
// is never guessed: the first process that is no wrapper may be any program.
func (f FS) Roles(tree []Process, listener int) {
	role := map[int]Role{}
	vllm := map[int]int{} // PID to the place of the launch process above it
	parts := map[int][]int{}
	topped := false // the program that all others are parts of is known
	for i := range tree {
		p := &tree[i]
		top, inside := vllm[p.PPID]
		if !inside && f.launches(p.PID) {
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
		case !topped && !f.wraps(*p):
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
	launchers(tree)
	if len(tree) > 0 && tree[0].Role == Other {
		tree[0].Role = Program // a shell alone
	}
}

// launches tells whether a process has vLLM's own command line, not that of a
// wrapper around it.
func (f FS) launches(pid int) bool {
	argv, err := f.argv(pid)
	if err != nil || !mayServe(argv) {
		return false
	}
	cfg, err := launch.Parse(argv, nil, nil)
	return err == nil && cfg.Direct()
}

// otherRole judges a process that does not belong to a vLLM launch.
func (f FS) otherRole(p Process, parent Role) Role {
	argv, _ := f.argv(p.PID)
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

// programOf is what a process runs, without its directory.
func programOf(p Process, argv []string) string {
	if len(argv) > 0 && argv[0] != "" {
		return filepath.Base(argv[0])
	}
	return p.Comm
}

// wraps tells whether a process only starts something and waits for it. A login shell
// is called "-bash".
func (f FS) wraps(p Process) bool {
	argv, _ := f.argv(p.PID)
	return slices.Contains(wrappers, strings.TrimPrefix(programOf(p, argv), "-"))
}

// servers are programs and Python modules that serve models, by the words of their
// command lines: "python -m llama_cpp.server", "lmdeploy serve api_server".
var servers = []struct{ name, then string }{
	{"llama_cpp.server", ""}, {"mlx_lm.server", ""}, {"mlx_lm", "server"}, {"lmdeploy", "serve"}, {"transformers", "serve"},
	{"aphrodite", "run"}, {"trtllm-serve", ""}, {"tritonserver", ""},
}

// servesModels tells whether a command line, or what its interpreter was given, is that
// of a known server.
func servesModels(argv []string) bool {
	if len(argv) > 0 && slices.Contains(wrappers, filepath.Base(argv[0])) {
		return false // it holds the server's
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

// launchers tells wrappers with something below them from other helpers, and a program
// that started a server from one that nothing is known of.
func launchers(tree []Process) {
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
