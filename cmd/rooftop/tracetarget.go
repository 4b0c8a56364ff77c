package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rooftop-dev/rooftop/collect/ggml"
	"github.com/rooftop-dev/rooftop/collect/ggml/binary"
)

// attach opens the events of the runtime that is meant, at the cheapest detail.
func (o *traceOptions) attach() (operatorSource, error) {
	if o.open != nil {
		return o.open()
	}
	r, err := o.findRuntime()
	if err != nil {
		return nil, err
	}
	source, err := ggml.Open(r, ggml.Options{All: o.file != ""})
	if err != nil {
		return nil, fail(exitUnreachable, fmt.Errorf("trace: %w", err))
	}
	return source, nil
}

// findRuntime reads the files of the runtime that is meant.
func (o *traceOptions) findRuntime() (*binary.Runtime, error) {
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
		return nil, fail(exitUnreachable, fmt.Errorf("trace: %w", err))
	}
	return r, nil
}

// findProcess finds the process that was named, or the only one that there is.
func (o *traceOptions) findProcess() (int, error) {
	found, err := binary.Find(procRoot)
	if err != nil {
		return 0, fail(exitUnreachable, fmt.Errorf("trace: %w", err))
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
		return 0, fail(exitUnreachable, fmt.Errorf("trace: no process that computes with GGML has %q in its command line; there are %d others; give --pid N%s", o.name, len(found), unseen(os.Geteuid())))
	case len(meant) == 0:
		next := "start one, or give --pid N"
		if o.roof {
			next += "; 'rooftop trace roof' measures the machine alone"
		}
		return 0, fail(exitUnreachable, fmt.Errorf("trace: no process here has a GGML runtime mapped (llama.cpp, Ollama): %s%s", next, unseen(os.Geteuid())))
	}
	lines := make([]string, len(meant))
	for i, c := range meant {
		program, rest, _ := strings.Cut(c.Command, " ")
		lines[i] = fmt.Sprintf("  --pid %d   %s %.50s", c.PID, filepath.Base(program), rest)
	}
	return 0, usage("%d processes here compute with GGML; say which:\n%s", len(meant), strings.Join(lines, "\n"))
}

// unseen says what a user who is not root does not see; the kernel hides mappings of other
// users' processes.
func unseen(user int) string {
	if user == 0 {
		return ""
	}
	return "; processes of other users are seen by root alone"
}
