// Package chart draws numbers on a sheet of cells: sparklines, bars, plots in
// braille. Each chart is a function of its values, its size and its scale; none
// knows what the numbers are of, and none keeps anything between two frames.
//
// A value that is absent, NaN or infinite is a gap: it is neither zero nor joined
// to its neighbours. Charts have a given size and show what fits; none of them
// needs a least one. A set of glyphs that is ASCII draws all of it in seven bits.
package chart
