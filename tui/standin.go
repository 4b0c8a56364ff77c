package tui

import "github.com/rooftop-dev/rooftop/tui/cell"

// standIn stands in for every view while there is nothing to show in one: what
// happens, what is known of it, what a person can do, and what follows.
type standIn struct {
	title, clock string
	what         string
	facts        []labelled
	steps        [][2]string // a command or key, and what it does
	last         string
}

// labelled is a text with its name.
type labelled struct {
	token      cell.Token
	name, text string
}

// standInCells is how wide it gets.
const standInCells = 76

func (x *standIn) draw(p cell.Pane) {
	w := min(p.Width()-4, standInCells)
	p = p.Sub(max(2, (p.Width()-w)/2), 0, w, p.Height())
	y := max(0, min(3, (p.Height()-14)/2))
	p.Text(0, y, cell.Title, x.title)
	p.Text(p.Cells(x.title)+2, y, cell.Muted, x.clock)
	y += 2
	if x.what != "" {
		y = p.Paragraph(0, y, cell.Body, x.what)
	}
	if x.what != "" && len(x.facts) > 0 {
		y++
	}
	for _, f := range x.facts {
		if f.text != "" {
			p.Text(0, y, cell.Muted, f.name)
			y = p.Paragraph(10, y, f.token, f.text)
		}
	}
	y++
	if len(x.steps) > 0 {
		y = x.drawSteps(p, y) + 1
	}
	p.Paragraph(0, y, cell.Muted, x.last)
}

// drawSteps lists what a person can do from line y on, and returns the line after it.
func (x *standIn) drawSteps(p cell.Pane, y int) int {
	p.Text(0, y, cell.Strong, "What you can do")
	y++
	column := 0
	for _, step := range x.steps {
		column = max(column, p.Cells(step[0]))
	}
	for _, step := range x.steps {
		p.Text(2, y, cell.Accent, step[0])
		y = p.Paragraph(2+column+2, y, cell.Body, step[1])
	}
	return y
}
