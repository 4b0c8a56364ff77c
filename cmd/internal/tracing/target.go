package tracing

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/collect/ggml"
	"github.com/rooftop-dev/rooftop/collect/ggml/binary"
)

// attach attaches to the selected runtime, with the cheapest detail.
func (o *Options) attach() (Source, error) {
	if o.open != nil {
		return o.open()
	}
	r, err := o.findRuntime()
	if err != nil {
		return nil, err
	}
	source, err := ggml.Open(r, ggml.Options{})
	if err != nil {
		return nil, cli.Fail(cli.ExitUnreachable, fmt.Errorf("trace: %w", err))
	}
	return source, nil
}

// findRuntime reads the files of the selected runtime.
func (o *Options) findRuntime() (*binary.Runtime, error) {
	var r *binary.Runtime
	var err error
	switch {
	case o.file != "":
		r, err = binary.FromFile(o.file)
	default:
		pid := o.pid
		if pid == 0 {
			if pid, err = o.findProcess(); err != nil {
				return nil, err
			}
		}
		r, err = binary.FromProcess(pid)
	}
	if err != nil {
		return nil, cli.Fail(cli.ExitUnreachable, fmt.Errorf("trace: %w", err))
	}
	return r, nil
}

// findProcess returns the PID of the named process, or of the only candidate.
func (o *Options) findProcess() (int, error) {
	found, err := binary.Find("/proc")
	if err != nil {
		return 0, cli.Fail(cli.ExitUnreachable, fmt.Errorf("trace: %w", err))
	}
	var meant []binary.Candidate
	for _, c := range found {
		if strings.Contains(c.Command, o.name) {
			meant = append(meant, c)
		}
	}
	switch {
	case len(meant) == 1:
		return meant[0].PID, nil
	case len(meant) == 0 && o.name != "":
		return 0, cli.Fail(cli.ExitUnreachable, fmt.Errorf("trace: no process that computes with GGML has %q in its command line; give the PID of the one that is meant%s%s", o.name, otherUsersNote(os.Geteuid()), candidateList(found)))
	case len(meant) == 0:
		return 0, cli.Fail(cli.ExitUnreachable, fmt.Errorf("trace: no process here has a GGML runtime mapped (llama.cpp, Ollama): start one, or give --pid N%s", otherUsersNote(os.Geteuid())))
	}
	return 0, cli.Usagef("%d processes here compute with GGML; say which:%s", len(meant), strings.TrimPrefix(candidateList(meant), "; these do:"))
}

// longestCommand is the number of bytes of a command line that are shown: those of servers differ
// only at their ends.
const longestCommand = 240

// candidateList lists processes, one per line, as the end of a sentence; "" if there are none.
func candidateList(found []binary.Candidate) string {
	if len(found) == 0 {
		return ""
	}
	list := "; these do:"
	for _, c := range found {
		program, rest, _ := strings.Cut(c.Command, " ")
		command := filepath.Base(program) + " " + rest
		if len(command) > longestCommand {
			command = strings.ToValidUTF8(command[:longestCommand], "") + "…"
		}
		list += fmt.Sprintf("\n  --pid %-7d %s", c.PID, command)
	}
	return list
}

// otherUsersNote explains what a user other than root cannot see: the kernel hides mappings of
// other users' processes.
func otherUsersNote(user int) string {
	if user == 0 {
		return ""
	}
	return "; only root sees processes of other users"
}
