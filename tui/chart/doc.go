// Package chart draws numbers on a sheet of cells: sparklines, bars, plots in
// braille. Each chart is a function of its values, its size and its scale; none
// knows what the numbers are of.
package chart
