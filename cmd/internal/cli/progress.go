package cli

import (
	"fmt"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"
)

// Progress is a line on stderr for a waiting user. It is shown only on a terminal, not to scripts.
type Progress struct {
	w     *World
	width int
	on    bool
}

// NewProgress returns an empty progress line.
func NewProgress(w *World, o *Output) *Progress {
	width, tty := Terminal(w.Stderr)
	return &Progress{w: w, width: width, on: tty && !o.Plain}
}

// Shown reports whether the line is visible.
func (p *Progress) Shown() bool { return p.on }

// Show replaces the text of the line; "" clears it.
func (p *Progress) Show(text string) {
	if p.on {
		text = Printable(strings.ReplaceAll(text, "\n", " "))
		fmt.Fprint(p.w.Stderr, "\r\x1b[K"+ansi.Truncate(text, max(0, p.width-1), ""))
	}
}

// Done clears the line permanently: a restart continues to report steps after a screen has taken
// the terminal.
func (p *Progress) Done() {
	p.Show("")
	p.on = false
}

// CountDone returns a function that counts one more of all as done and reports that to progress. Several goroutines
// may call it; progress is called by one of them at a time. progress may be nil.
func CountDone(progress func(done, all int), all int) func() {
	var mu sync.Mutex
	done := 0
	return func() {
		mu.Lock()
		defer mu.Unlock()
		if done++; progress != nil {
			progress(done, all)
		}
	}
}
