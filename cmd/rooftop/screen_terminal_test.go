package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"
)

// glass is a terminal without a screen: it takes what a program writes and shows
// what a person would see. It knows the sequences that a plain terminal is sent,
// and notes the others.
type glass struct {
	mu        sync.Mutex
	width     int
	cells     [][]string
	x, y      int
	top, end  int    // of what scrolls: the first line, and the one behind the last
	pending   []byte // the beginning of a sequence
	bytes     int
	alternate bool
	hidden    bool // the cursor
	clipped   bool // no automatic wrap
	inserting bool // what is written shifts the rest of its line
	unknown   []string
}

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
			break // it goes on in the next write
		}
		if width > 0 {
			g.put(string(seq), width)
		} else {
			g.control(string(seq), parser)
		}
		rest = rest[n:]
	}
	g.pending = slices.Clone(rest)
	return len(p), nil
}

func (g *glass) put(text string, width int) {
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
	switch seq {
	case "\r":
		g.x = 0
		return
	case "\n": // with a return: the line discipline of a terminal that is none is not raw
		g.x = 0
		if g.y == g.end-1 {
			g.scroll(g.top, 1)
		} else {
			g.move(0, g.y+1)
		}
		return
	case "\x1bM":
		if g.y == g.top {
			g.scroll(g.top, -1)
		} else {
			g.move(g.x, g.y-1)
		}
		return
	case "\b":
		g.x = max(g.x-1, 0)
		return
	}
	if !ansi.HasCsiPrefix(seq) {
		return // titles, queries, the clipboard: nothing that is seen
	}
	command := ansi.Cmd(p.Command())
	n, _ := p.Param(0, 1)
	n = max(n, 1)
	if command.Prefix() == '?' {
		g.mode(p, command.Final() == 'h')
		return
	}
	if command.Prefix() != 0 || command.Intermediate() != 0 {
		return
	}
	switch command.Final() {
	case 'm', 'n', 't', 'c', 'q':
	case 'h', 'l':
		g.inserting = n == 4 && command.Final() == 'h'
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
		which, _ := p.Param(0, 0)
		g.erase(command.Final() == 'J', which)
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
	case 'P': // delete characters
		line := g.cells[g.y]
		g.cells[g.y] = append(slices.Delete(line, g.x, min(g.x+n, g.width)), slices.Repeat([]string{" "}, min(n, g.width-g.x))...)
	case '@': // insert characters
		line := slices.Insert(g.cells[g.y], g.x, slices.Repeat([]string{" "}, n)...)
		g.cells[g.y] = line[:g.width]
	default:
		g.unknown = append(g.unknown, fmt.Sprintf("%q", seq))
	}
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

// scroll moves the lines from one on up by n, or down where it is negative.
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

// erase clears a part of the line, or of all lines: 0 from the cursor, 1 up to
// it, 2 everything.
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

// String is what is seen.
func (g *glass) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var b strings.Builder
	for _, line := range g.cells {
		b.WriteString(strings.TrimRight(strings.Join(line, ""), " ") + "\n")
	}
	return b.String()
}

// written is how many bytes came so far.
func (g *glass) written() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.bytes
}

// keys is a keyboard: what is typed is read as if it came from a terminal.
type keys struct{ typed chan string }

func newKeys() *keys { return &keys{typed: make(chan string, 64)} }

// press types keys.
func (k *keys) press(text string) { k.typed <- text }

// Read implements io.Reader.
func (k *keys) Read(p []byte) (int, error) {
	text, ok := <-k.typed
	if !ok {
		return 0, io.EOF
	}
	return copy(p, text), nil
}

// unplug ends whoever reads.
func (k *keys) unplug() { close(k.typed) }
