// Package cell is the sheet that the screen is drawn on: a grid of cells, each
// with one sign and what it means. Panes are rectangles of it; what is written
// into a pane never leaves it, so that no line can be too wide and no panel can
// write over another. Meaning becomes colour only when the sheet is rendered.
package cell
