// Package cli is the part that all commands share: their environment, exit codes, flags and help,
// output options, the progress line, signals.
package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/tui/lines"
)

// World is everything outside the process that a command uses, so that tests can replace it.
type World struct {
	Args   []string
	Env    func(string) (string, bool)
	Stdin  io.Reader // nil without input
	Stdout io.Writer
	Stderr io.Writer
	// Replace replaces this process by rooftop with other arguments; nil does nothing.
	Replace func(args []string)
}

// Notef prints a remark on stderr, on its own line.
func (w *World) Notef(format string, args ...any) {
	fmt.Fprintln(w.Stderr, "rooftop: "+Printable(fmt.Sprintf(format, args...)))
}

// Printable returns text in which nothing moves a terminal's cursor or changes its state: an error may repeat
// what a server, a file or a log said. Lines and tabs stay.
func Printable(text string) string {
	list := strings.SplitAfter(text, "\n")
	for i, line := range list {
		parts := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		for j, part := range parts {
			parts[j] = strings.ReplaceAll(lines.Safe(part, false), figure.NBSP, " ")
		}
		list[i] = strings.Join(parts, "\t") + line[len(strings.TrimSuffix(line, "\n")):]
	}
	return strings.Join(list, "")
}

// ReportSaved lists the written files, for a user at a terminal.
func (w *World) ReportSaved(files []string) {
	if _, tty := Terminal(w.Stderr); tty && len(files) > 0 {
		fmt.Fprintln(w.Stderr, "saved:", strings.Join(files, ", "))
	}
}

// Terminal returns the width of a terminal. ok is false if w is not a terminal.
func Terminal(w io.Writer) (width int, ok bool) {
	f, isFile := File(w)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		width = 80
	}
	return width, true
}

// TerminalInput reports whether r is a terminal that a user can type into.
func TerminalInput(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
