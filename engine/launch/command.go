package launch

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// form is how vLLM was called, which determines the meaning of a positional word.
type form int

const (
	formNone   form = iota
	formServe       // `vllm serve MODEL …`: the first lone word is the model
	formModule      // `python -m vllm.entrypoints.openai.api_server …`: lone words are ignored
	formArgs        // flags only, as a container image's arguments
)

// simulator is the program that `rooftop sim MODEL …` starts: a simulated server
// with vLLM's command line.
const simulator = "rooftop"

// maxDepth is the deepest nesting of scripts that is searched.
const maxDepth = 4

// command is one command line, with the vLLM call somewhere in it. It is
// never changed in place.
type command struct {
	before string // script text up to the first word
	ws     []word
	after  string // script text from the last word on
	args   int    // index of the first word after the call
	g      *grammar
	form   form
	direct bool // the program itself is the engine, no wrapper

	child   *command // set if the call is in a script, which is word childAt
	childAt int
	shell   bool // the words come from a script
}

// find locates the call of an engine in ws, also behind wrappers and inside scripts.
func find(ws []word, env map[string]string, depth int) (*command, bool) {
	for _, g := range grammars {
		if f, args, direct := g.call(ws); f != formNone {
			return &command{g: g, ws: ws, args: args, form: f, direct: direct}, true
		}
	}
	if depth >= maxDepth {
		return nil, false
	}
	for i, w := range ws {
		if i == 0 || w.opaque || !isScript(ws, i) {
			continue
		}
		if child, ok := findScript(w.text, env, depth+1); ok {
			return &command{ws: ws, child: child, childAt: i}, true
		}
	}
	return nil, false
}

// findScript locates the call of an engine in a shell script.
func findScript(script string, env map[string]string, depth int) (*command, bool) {
	segs, whole := split(script, env)
	if !whole {
		return nil, false
	}
	for i, seg := range segs {
		c, ok := find(seg.ws, env, depth)
		if !ok {
			continue
		}
		c.shell = true
		c.before = join(segs[:i]) + seg.head
		c.after = seg.tail + join(segs[i+1:])
		return c, true
	}
	return nil, false
}

func join(segs []segment) string {
	var b strings.Builder
	for _, seg := range segs {
		b.WriteString(seg.head + spelled(seg.ws) + seg.tail)
	}
	return b.String()
}

// spelled returns words as a script writes them.
func spelled(ws []word) string {
	var b strings.Builder
	for _, w := range ws {
		b.WriteString(w.gap + w.raw)
	}
	return b.String()
}

// isScript reports whether word i is the script of a shell's -c option.
func isScript(ws []word, i int) bool {
	opt := ws[i-1].text
	if len(opt) < 2 || opt[0] != '-' || opt[1] == '-' || !strings.HasSuffix(opt, "c") {
		return false
	}
	for j := i - 2; j >= 0; j-- {
		switch path.Base(ws[j].text) {
		case "sh", "bash", "dash", "ash", "zsh", "ksh", "busybox":
			return true
		}
		if !strings.HasPrefix(ws[j].text, "-") && !strings.HasPrefix(ws[j].text, "+") && ws[j].text != "pipefail" {
			return false
		}
	}
	return false
}

// callVLLM finds the vLLM call among the words themselves, not inside scripts.
func callVLLM(ws []word) (f form, args int, direct bool) {
	if len(ws) == 0 || mentions(ws) {
		return formNone, 0, false
	}
	for i, w := range ws {
		switch {
		case w.opaque:
			continue
		case isVLLM(w.text) && at(ws, i+1) == "serve":
			return formServe, i + 2, interpreted(ws[:i])
		case isSimulator(w.text) && at(ws, i+1) == "sim" && at(ws, i+2) != "bench":
			return formServe, i + 2, interpreted(ws[:i])
		case w.text == "-m":
			if f, n := module(at(ws, i+1), at(ws, i+2)); f != formNone {
				return f, i + 2 + n, interpreted(ws[:i])
			}
		case strings.HasPrefix(w.text, "-mvllm"):
			if f, n := module(w.text[2:], at(ws, i+1)); f != formNone {
				return f, i + 1 + n, interpreted(ws[:i])
			}
		case strings.HasSuffix(w.text, "vllm/entrypoints/openai/api_server.py"):
			return formModule, i + 1, interpreted(ws[:i])
		case strings.HasSuffix(w.text, "vllm/entrypoints/cli/main.py") && at(ws, i+1) == "serve":
			return formServe, i + 2, interpreted(ws[:i])
		case vllmImage.MatchString(w.text) && containerRun(ws[:i]):
			return imageArgs(ws, i+1)
		}
	}
	if strings.HasPrefix(ws[0].text, "--") {
		return formArgs, 0, false
	}
	return formNone, 0, false
}

func at(ws []word, i int) string {
	if i < len(ws) && !ws[i].opaque {
		return ws[i].text
	}
	return ""
}

func isVLLM(s string) bool { return path.Base(s) == "vllm" && s != "" }

func isSimulator(s string) bool { return strings.TrimSuffix(path.Base(s), ".exe") == simulator }

// module returns the form in which `python -m NAME next` calls vLLM, and how many words
// after the name belong to the call.
func module(name, next string) (form, int) {
	switch {
	case name == "vllm.entrypoints.openai.api_server":
		return formModule, 0
	case (name == "vllm.entrypoints.cli.main" || name == "vllm.scripts" || name == "vllm") && next == "serve":
		return formServe, 1
	}
	return formNone, 0
}

// bystanders are programs whose arguments may name a vLLM command that they do not run.
// Any other program before such a command counts as a wrapper, because no list of
// wrappers is complete (uv, numactl, tini, ray job, nsys, srun, …).
var bystanders = []string{
	"grep", "egrep", "fgrep", "rg", "ag", "pgrep", "pkill", "ps", "echo", "printf", "cat", "less", "more", "head", "tail",
	"vi", "vim", "nvim", "nano", "emacs", "man", "which", "type", "ls", "find", "git", "pip", "pip3", "apt", "apt-get",
	"journalctl", "watch", "logger", "test", "[", "#", "complete", "alias", "help",
}

func mentions(ws []word) bool { return slices.Contains(bystanders, path.Base(ws[0].text)) }

var pythonName = regexp.MustCompile(`^(python|pypy)[0-9.]*t?$`)

// interpreted reports whether there are no words before the call, or only a Python
// interpreter with its options, so that the process is vLLM itself.
func interpreted(before []word) bool {
	if len(before) == 0 {
		return true
	}
	if !pythonName.MatchString(path.Base(before[0].text)) {
		return false
	}
	for i := 1; i < len(before); i++ {
		switch text := before[i].text; {
		case text == "-X" || text == "-W":
			i++
		case !strings.HasPrefix(text, "-"):
			return false
		}
	}
	return true
}

// vllmImage matches container images whose entry point is the server:
// vllm/vllm-openai:v0.11.0, registry/vllm-openai-rocm@sha256:… A bare "vllm" is
// more often the name of a container.
var vllmImage = regexp.MustCompile(`^([^/.][^:@]*/vllm[-_a-z0-9.]*([:@][^/]*)?|vllm[-_a-z0-9.]*[:@][^/]+)$`)

func containerRun(before []word) bool {
	runner := slices.ContainsFunc(before, func(w word) bool {
		return slices.Contains([]string{"docker", "podman", "nerdctl"}, path.Base(w.text))
	})
	return runner && slices.ContainsFunc(before, func(w word) bool { return w.text == "run" || w.text == "create" })
}

// imageArgs parses the words after an image's name: a command, flags for the image's entry
// point, or a model and flags.
func imageArgs(ws []word, from int) (form, int, bool) {
	if f, args, _ := callVLLM(ws[from:]); f != formNone {
		return f, from + args, false
	}
	first, second := at(ws, from), at(ws, from+1)
	switch {
	case first == "serve":
		return formServe, from + 1, false
	case first != "" && (strings.HasPrefix(second, "-") || strings.Contains(first, "/") && second == ""):
		if !slices.Contains([]string{"sh", "bash", "python", "python3"}, path.Base(first)) {
			return formServe, from, false
		}
	}
	return formNone, 0, false
}

// launch returns the innermost command, which has the call.
func (c *command) launch() *command {
	for c.child != nil {
		c = c.child
	}
	return c
}

// edited returns a copy with edit applied to the innermost words.
func (c *command) edited(edit func([]word) []word) *command {
	d := *c
	if c.child == nil {
		d.ws = edit(slices.Clone(c.ws))
		d.separate()
		return &d
	}
	return c.withChild(c.child.edited(edit))
}

// separate inserts a blank between a number and a redirection after it, because a shell
// reads "32>log" as descriptor 32.
func (c *command) separate() {
	if !c.shell {
		return
	}
	redirects := func(s string) bool { return s != "" && (s[0] == '<' || s[0] == '>') }
	number := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	for i, w := range c.ws {
		switch {
		case !number(w.raw):
		case i+1 < len(c.ws) && redirects(c.ws[i+1].gap):
			c.ws[i+1].gap = " " + c.ws[i+1].gap
		case i+1 == len(c.ws) && redirects(c.after):
			c.after = " " + c.after
		}
	}
}

// text returns the script with the command.
func (c *command) text() string { return c.before + spelled(c.ws) + c.after }

// argv returns the outermost argument vector.
func (c *command) argv() []string {
	argv := make([]string, len(c.ws))
	for i, w := range c.ws {
		argv[i] = w.text
	}
	return argv
}

// inline returns the variables that the command line sets for vLLM itself:
// `NAME=value vllm serve …`, `env NAME=value …`, `docker run -e NAME=value …`.
func (c *command) inline() map[string]string {
	vars := map[string]string{}
	for ; c != nil; c = c.child {
		end := c.args
		if c.child != nil {
			end = c.childAt
		}
		for i, w := range c.ws[:end] {
			text := w.text
			if rest, ok := strings.CutPrefix(text, "--env="); ok {
				text = rest
			} else if strings.HasPrefix(text, "-e") && i > 0 && !strings.Contains(text[:min(3, len(text))], "=") {
				text = text[2:]
			}
			name, value, ok := strings.Cut(text, "=")
			if ok && !w.opaque && name != "" && nameLen(name) == len(name) {
				vars[name] = value
			}
		}
	}
	return vars
}
