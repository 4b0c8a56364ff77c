package main

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/google/go-cmp/cmp"
)

// scribble draws another frame with each key.
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

// scrawl changes some of the frame: words, runs of blanks, whole lines, and where
// lines are.
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

// What the glass shows is what was drawn, whichever way the lines are changed.
func TestGlass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const width, height = 40, 10
		g, k := newGlass(width, height), newKeys()
		s := &scribble{draw: rand.New(rand.NewPCG(3, 4))}
		for range height {
			s.frame = append(s.frame, strings.Repeat("x", width))
		}
		p := tea.NewProgram(s, onGlass(g, k)...)
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
			k.press("x")
		}
		if !g.alternate || !g.hidden {
			t.Error("no alternate screen, or a cursor")
		}
		k.press("q")
		if err := <-done; err != nil {
			t.Error(err)
		}
		if g.alternate || g.hidden {
			t.Error("the terminal was not left as it was")
		}
		for _, u := range g.unknown {
			t.Errorf("the glass does not know %s", u)
		}
		k.unplug()
	})
}

// onGlass are the options of a program that runs on a glass and a keyboard.
func onGlass(g *glass, k *keys) []tea.ProgramOption {
	return []tea.ProgramOption{
		tea.WithInput(k), tea.WithOutput(g), tea.WithoutSignalHandler(), tea.WithWindowSize(g.width, len(g.cells)),
		tea.WithColorProfile(colorprofile.TrueColor), tea.WithEnvironment([]string{"TERM=plain"}),
	}
}
