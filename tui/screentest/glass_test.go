package screentest

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"
)

// scribble draws a different frame after each key.
type scribble struct {
	draw  *rand.Rand
	frame []string
}

func (s *scribble) Init() tea.Cmd { return nil }

func (s *scribble) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	if k, ok := m.(tea.KeyPressMsg); ok {
		if k.String() == "q" {
			return s, tea.Quit
		}
		s.scrawl()
	}
	return s, nil
}

// scrawl changes parts of the frame: words, runs of blanks, whole lines, and the order of lines.
func (s *scribble) scrawl() {
	if s.draw.IntN(3) == 0 {
		from, to := s.draw.IntN(len(s.frame)), s.draw.IntN(len(s.frame))
		line := s.frame[from]
		s.frame = slices.Insert(slices.Delete(s.frame, from, from+1), to, line)
	}
	for range 1 + s.draw.IntN(5) {
		y := s.draw.IntN(len(s.frame))
		line := []rune(s.frame[y])
		from := s.draw.IntN(len(line))
		to := from + s.draw.IntN(len(line)-from+1)
		for x := from; x < to; x++ {
			line[x] = []rune("ab  ⣿▁│—")[s.draw.IntN(8)]
		}
		s.frame[y] = string(line)
		if s.draw.IntN(6) == 0 {
			s.frame[y] = strings.Repeat(" ", len(line))
		}
	}
}

func (s *scribble) View() tea.View {
	v := tea.NewView(strings.Join(s.frame, "\n"))
	v.AltScreen = true
	return v
}

// The glass shows what was drawn, however the lines change.
func TestGlass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const width, height = 40, 10
		g, k := NewGlass(width, height), NewKeys()
		s := &scribble{draw: rand.New(rand.NewPCG(3, 4))}
		for range height {
			s.frame = append(s.frame, strings.Repeat("x", width))
		}
		p := tea.NewProgram(s, Options(g, k)...)
		done := make(chan error)
		go func() {
			_, err := p.Run()
			done <- err
		}()
		for i := range 300 {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			var want strings.Builder
			for _, line := range s.frame {
				want.WriteString(strings.TrimRight(line, " ") + "\n")
			}
			if diff := cmp.Diff(want.String(), g.String()); diff != "" {
				t.Fatalf("frame %d (-drawn +seen):\n%s", i, diff)
			}
			k.Press("x")
		}
		if !g.TakenOver() {
			t.Error("no alternate screen, or a cursor")
		}
		k.Press("q")
		if err := <-done; err != nil {
			t.Error(err)
		}
		if g.TakenOver() {
			t.Error("the terminal was not left as it was")
		}
		for _, u := range g.Unknown {
			t.Errorf("the glass does not know %s", u)
		}
		k.Unplug()
	})
}
