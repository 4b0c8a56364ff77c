package frame

import "github.com/rooftop-dev/rooftop/tui/cell"

// Placeholder is shown instead of a view while there is nothing to show: what happens, the known
// facts, what the user can do, and what follows.
type Placeholder struct {
	Title, Clock string
	What         string
	Facts        []Labelled
	Steps        [][2]string // a command or key, and what it does
	Last         string
}

// Labelled is a text with a label.
type Labelled struct {
	Token      cell.Token
	Name, Text string
}

// placeholderCells is the maximum width of a placeholder.
const placeholderCells = 76

// Draw draws the placeholder.
func (x *Placeholder) Draw(u *Settings, p cell.Pane) {
	w := min(p.Width()-4, placeholderCells)
	p = p.Sub(max(2, (p.Width()-w)/2), 0, w, p.Height())
	y := max(0, min(3, (p.Height()-14)/2))
	p.Text(0, y, cell.Title, x.Title)
	p.Text(p.Cells(x.Title)+2, y, cell.Muted, x.Clock)
	y += 2
	if x.What != "" {
		y = u.Write(p, 0, y, cell.Body, x.What)
	}
	if x.What != "" && len(x.Facts) > 0 {
		y++
	}
	for _, f := range x.Facts {
		if f.Text != "" {
			p.Text(0, y, cell.Muted, f.Name)
			y = u.Write(p, 10, y, f.Token, f.Text)
		}
	}
	y++
	if len(x.Steps) > 0 {
		y = x.drawSteps(u, p, y) + 1
	}
	u.Write(p, 0, y, cell.Muted, x.Last)
}

// drawSteps lists what the user can do from line y on, and returns the line after the list.
func (x *Placeholder) drawSteps(u *Settings, p cell.Pane, y int) int {
	p.Text(0, y, cell.Strong, "What you can do")
	y++
	column := 0
	for _, step := range x.Steps {
		column = max(column, p.Cells(step[0]))
	}
	for _, step := range x.Steps {
		p.Text(2, y, cell.Accent, step[0])
		y = u.Write(p, 2+column+2, y, cell.Body, step[1])
	}
	return y
}
