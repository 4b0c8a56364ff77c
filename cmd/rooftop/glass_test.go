package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
)

// glass is a terminal in memory: it interprets the output of a program and returns the text that a
// user would see. It knows the sequences of a plain terminal and collects the others in Unknown.
type glass struct {
	mu        sync.Mutex
	width     int
	cells     [][]string
	x, y      int
	top, end  int    // scroll region: its first line, and the line after its last
	pending   []byte // an incomplete sequence
	bytes     int
	alternate bool
	hidden    bool // the cursor
	clipped   bool // no automatic wrap
	inserting bool // output shifts the rest of its line
	Unknown   []string
}

// newGlass returns an empty terminal, in cells.
func newGlass(width, height int) *glass {
	g := &glass{width: width, cells: make([][]string, height), end: height}
	for y := range g.cells {
		g.cells[y] = g.blank()
	}
	return g
}

func (g *glass) blank() []string { return slices.Repeat([]string{" "}, g.width) }

// Write implements io.Writer.
func (g *glass) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bytes += len(p)
	rest := slices.Concat(g.pending, p)
	parser := ansi.NewParser()
	for len(rest) > 0 {
		seq, width, n, state := ansi.DecodeSequence(rest, ansi.NormalState, parser)
		if state != ansi.NormalState {
			break // continued in the next write
		}
		if width > 0 {
			g.print(string(seq), width)
		} else {
			g.control(string(seq), parser)
		}
		rest = rest[n:]
	}
	g.pending = slices.Clone(rest)
	return len(p), nil
}

func (g *glass) print(text string, width int) {
	if g.x+width > g.width {
		if g.clipped {
			g.x = g.width - width
		} else {
			g.move(0, g.y+1)
		}
	}
	if g.inserting {
		g.cells[g.y] = slices.Insert(g.cells[g.y], g.x, slices.Repeat([]string{" "}, width)...)[:g.width]
	}
	g.cells[g.y][g.x] = text
	for i := 1; i < width; i++ {
		g.cells[g.y][g.x+i] = ""
	}
	g.x += width
}

func (g *glass) control(seq string, p *ansi.Parser) {
	switch {
	case seq == "\r":
		g.x = 0
	case seq == "\n": // with a carriage return, because the output is not a tty in raw mode
		g.x = 0
		if g.y == g.end-1 {
			g.scroll(g.top, 1)
		} else {
			g.move(0, g.y+1)
		}
	case seq == "\x1bM":
		if g.y == g.top {
			g.scroll(g.top, -1)
		} else {
			g.move(g.x, g.y-1)
		}
	case seq == "\b":
		g.x = max(g.x-1, 0)
	case ansi.HasCsiPrefix(seq): // ignore titles, queries, the clipboard: they are not visible
		command := ansi.Cmd(p.Command())
		switch {
		case command.Prefix() == '?':
			g.mode(p, command.Final() == 'h')
		case command.Prefix() == 0 && command.Intermediate() == 0:
			g.command(command.Final(), p, seq)
		}
	}
}

// command executes a control sequence with numeric parameters.
func (g *glass) command(final byte, p *ansi.Parser, seq string) {
	first, _ := p.Param(0, 0)
	n := max(first, 1)
	switch final {
	case 'm', 'n', 't', 'c', 'q':
	case 'h', 'l':
		g.inserting = n == 4 && final == 'h'
	case 'H':
		column, _ := p.Param(1, 1)
		g.move(max(column, 1)-1, n-1)
	case 'A':
		g.move(g.x, g.y-n)
	case 'B':
		g.move(g.x, g.y+n)
	case 'C':
		g.move(g.x+n, g.y)
	case 'D':
		g.move(g.x-n, g.y)
	case 'G':
		g.move(n-1, g.y)
	case 'J', 'K':
		g.erase(final == 'J', first)
	case 'r':
		last, _ := p.Param(1, len(g.cells))
		g.top, g.end = n-1, last
		g.move(0, 0)
	case 'M': // delete lines
		g.scroll(g.y, n)
	case 'L': // insert lines
		g.scroll(g.y, -n)
	case 'S':
		g.scroll(g.top, n)
	case 'T':
		g.scroll(g.top, -n)
	case 'P', '@':
		g.shift(n, final == '@')
	default:
		g.Unknown = append(g.Unknown, fmt.Sprintf("%q", seq))
	}
}

// shift deletes n characters at the cursor, or inserts blanks there.
func (g *glass) shift(n int, insert bool) {
	line, blanks := g.cells[g.y], slices.Repeat([]string{" "}, min(n, g.width-g.x))
	if insert {
		g.cells[g.y] = slices.Insert(line, g.x, blanks...)[:g.width]
		return
	}
	g.cells[g.y] = append(slices.Delete(line, g.x, g.x+len(blanks)), blanks...)
}

func (g *glass) mode(p *ansi.Parser, on bool) {
	n, _ := p.Param(0, 0)
	switch n {
	case 1049:
		g.alternate = on
		g.erase(true, 2)
	case 25:
		g.hidden = !on
	case 7:
		g.clipped = !on
	}
}

// scroll moves the lines from line from on up by n, or down if n is negative.
func (g *glass) scroll(from, n int) {
	for range max(n, -n) {
		gone, line := from, g.end-1
		if n < 0 {
			gone, line = line, gone
		}
		g.cells = slices.Insert(slices.Delete(g.cells, gone, gone+1), line, g.blank())
	}
}

func (g *glass) move(x, y int) {
	g.x, g.y = min(max(x, 0), g.width-1), min(max(y, 0), len(g.cells)-1)
}

// erase clears the line, or all lines: which is 0 from the cursor on, 1 up to the cursor, 2
// everything.
func (g *glass) erase(lines bool, which int) {
	from, to := 0, g.width
	if which == 0 {
		from = min(g.x, g.width)
	}
	if which == 1 {
		to = min(g.x+1, g.width)
	}
	for x := from; x < to; x++ {
		g.cells[g.y][x] = " "
	}
	for y := range g.cells {
		if lines && (which == 2 || which == 0 && y > g.y || which == 1 && y < g.y) {
			g.cells[y] = g.blank()
		}
	}
}

// String returns the visible text.
func (g *glass) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var b strings.Builder
	for _, line := range g.cells {
		b.WriteString(strings.TrimRight(strings.Join(line, ""), " ") + "\n")
	}
	return b.String()
}

// Written returns how many bytes were written so far.
func (g *glass) Written() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.bytes
}

// keyboard is a keyboard whose input a program reads as if from a terminal.
type keyboard struct{ typed chan string }

// newKeyboard returns a keyboard without input.
func newKeyboard() *keyboard { return &keyboard{typed: make(chan string, 64)} }

// Press types keys.
func (k *keyboard) Press(text string) { k.typed <- text }

// Read implements io.Reader.
func (k *keyboard) Read(p []byte) (int, error) {
	text, ok := <-k.typed
	if !ok {
		return 0, io.EOF
	}
	return copy(p, text), nil
}

// Unplug makes Read return io.EOF once all keys are read.
func (k *keyboard) Unplug() { close(k.typed) }

// TakenOver reports whether a program uses the alternate screen or hides the cursor.
func (g *glass) TakenOver() bool { return g.alternate || g.hidden }

// glassOptions returns options of a program that runs on a glass and a keyboard.
func glassOptions(g *glass, k *keyboard) []tea.ProgramOption {
	return []tea.ProgramOption{
		tea.WithInput(k), tea.WithOutput(g), tea.WithoutSignalHandler(), tea.WithWindowSize(g.width, len(g.cells)),
		tea.WithColorProfile(colorprofile.TrueColor), tea.WithEnvironment([]string{"TERM=plain"}),
	}
}
