// Package cell is the canvas that the screen is drawn on: a grid of cells, each with one sign and
// one token for its meaning. Panes are rectangles of the canvas. Text written into a pane never
// leaves it, so no line is too wide and no panel overwrites another. Tokens become colours only
// when the canvas is rendered.
package cell
