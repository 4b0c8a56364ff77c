package tui

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// drawHeader writes what is looked at, and what a reader must not miss about it.
// What does not fit is left out, the least important first.
func drawHeader(p cell.Pane, s *scene) {
	x := p.Width() - 1
	right := func(t cell.Token, text string) {
		p.Right(x, 0, t, text)
		x -= p.Cells(text) + 2
	}
	right(cell.Muted, clock(s.elapsed))
	for _, m := range s.marks {
		right(m.token, m.text)
	}
	parts := slices.Clone(s.identity)
	for width(p, parts) > x && len(parts) > 2 {
		least := 0
		for i := range parts {
			if parts[i].keep < parts[least].keep {
				least = i
			}
		}
		parts = append(parts[:least], parts[least+1:]...)
	}
	at := 1
	for i, part := range parts {
		text := part.text
		if i == len(parts)-1 {
			text = p.Cut(text, x-at)
		}
		at = p.Text(at, 0, part.token, text) + part.gap
	}
}

// part is a piece of the header; those that are worth less give way.
type part struct {
	token cell.Token
	text  string
	gap   int // cells after it
	keep  int
}

func width(p cell.Pane, parts []part) int {
	n := 1
	for _, part := range parts {
		n += p.Cells(part.text) + part.gap
	}
	return n
}

// identity names the product, the server, its model and its GPU.
func identity(s *engine.Snapshot, u *look) []part {
	parts := []part{{cell.Title, "rooftop", 2, 2}}
	if !s.Attached {
		return append(parts, part{cell.Body, shortURL(s.Watch), 2, 5})
	}
	sign, token := liveness(s, u)
	parts = append(parts, part{token, sign, 1, 9}, part{cell.Body, shortURL(s.Target.URL), 2, 4})
	if m := s.Target.Model; m != "" {
		parts = append(parts, part{cell.Strong, path.Base(m), 2, 6})
	}
	if g := gpuName(&s.Facts); g != "" {
		parts = append(parts, part{cell.Body, g, 2, 3})
	}
	if v := s.Target.EngineVersion; v != "" {
		parts = append(parts, part{cell.Muted, "vLLM " + v, 2, 1})
	}
	return parts
}

// liveness is the sign of how the server answers.
func liveness(s *engine.Snapshot, u *look) (string, cell.Token) {
	switch {
	case s.Phase == engine.PhaseDown:
		return u.glyphs.Bad, cell.Bad
	case s.Paused || len(s.Sources) > 0 && s.Sources[0].State != engine.SourceFresh:
		return u.glyphs.Warn, cell.Warn
	}
	return u.glyphs.Good, cell.OK
}

// gpuName is the GPU without its maker, with how many there are.
func gpuName(f *engine.Facts) string {
	if !f.GPUName.Known {
		if f.Device.Known && f.Device.Value == "cpu" {
			return "CPU"
		}
		return ""
	}
	name := strings.TrimPrefix(f.GPUName.Value, "NVIDIA ")
	if f.GPUCount.Known && f.GPUCount.Value > 1 {
		return fmt.Sprintf("%d × %s", f.GPUCount.Value, name)
	}
	return name
}

func shortURL(url string) string {
	url = strings.TrimPrefix(strings.TrimPrefix(url, "http://"), "https://")
	return strings.TrimSuffix(strings.TrimSuffix(url, "/metrics"), "/")
}

// marksOf are the words that change how everything else is to be read, from the
// right edge on.
func marksOf(s *engine.Snapshot, u *look) []remark {
	var marks []remark
	if u.frozen {
		marks = append(marks, remark{cell.Selected, " FROZEN "})
	}
	if s.Paused {
		marks = append(marks, remark{cell.Selected, " PAUSED "})
	}
	if u.tape != nil {
		marks = append(marks, remark{cell.Accent, "REPLAY"})
	}
	if m, ok := badge(s); ok {
		marks = append(marks, m)
	}
	if s.Target.Simulated {
		marks = append(marks, remark{cell.Accent, "SIMULATED"})
	}
	return marks
}

// clock writes a time as m:ss, from an hour on as h:mm:ss.
func clock(d time.Duration) string {
	n := int(max(0, d) / time.Second)
	if n >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", n/3600, n/60%60, n%60)
	}
	return fmt.Sprintf("%d:%02d", n/60, n%60)
}
