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
		return 0, fail(exitUnreachable, fmt.Errorf("trace: no process that computes with GGML has %q in its command line; give the PID of the one that is meant%s%s", o.name, unseen(os.Geteuid()), listOf(found)))
	case len(meant) == 0:
		next := "start one, or give --pid N"
		if o.roof {
			next += "; 'rooftop trace roof' measures the machine alone"
		}
		return 0, fail(exitUnreachable, fmt.Errorf("trace: no process here has a GGML runtime mapped (llama.cpp, Ollama): %s%s", next, unseen(os.Geteuid())))
	}
	return 0, usage("%d processes here compute with GGML; say which:%s", len(meant), strings.TrimPrefix(listOf(meant), "; these do:"))
}

// listOf lists processes, a line for each, as the end of a sentence; "" where there are
// none.
func listOf(found []binary.Candidate) string {
	if len(found) == 0 {
		return ""
	}
	var commands []string
	for _, c := range found {
		program, rest, _ := strings.Cut(c.Command, " ")
		commands = append(commands, filepath.Base(program)+" "+rest)
	}
	list := "; these do:"
	for i, command := range toldApart(commands, 66) {
		list += fmt.Sprintf("\n  --pid %-7d %s", found[i].PID, command)
	}
	return list
}

// toldApart shortens command lines to so many bytes by leaving out arguments, and parts
// of paths, that all of them begin with: those are what does not tell them apart.
func toldApart(commands []string, most int) []string {
	longest, alike := 0, len(commands[0])
	for _, c := range commands {
		longest, alike = max(longest, len(c)), min(alike, len(c))
		for i := range alike {
			if c[i] != commands[0][i] {
				alike = i
				break
			}
		}
	}
	program := strings.Index(commands[0], " ") + 1
	from := program
	for i := program; len(commands) > 1 && i < alike && program+len("… ")+longest-from > most; i++ {
		if strings.IndexByte(" /", commands[0][i]) >= 0 {
			from = i + 1
		}
	}
	list := make([]string, len(commands))
	for i, c := range commands {
		if from > program && program > 0 {
			c = c[:program] + "… " + c[from:]
		}
		if len(c) > most {
			c = strings.ToValidUTF8(c[:most-len("…")], "") + "…"
		}
		list[i] = c
	}
	return list
}

// unseen says what a user who is not root does not see; the kernel hides mappings of other
// users' processes.
func unseen(user int) string {
	if user == 0 {
		return ""
	}
	return "; processes of other users are seen by root alone"
}
