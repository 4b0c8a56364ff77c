// Package chart draws numbers on a canvas: sparklines, bars, and plots in braille. A chart depends
// only on its values, size and scale. Charts do not know what the numbers mean, and keep nothing
// between frames.
//
// A value that is absent, NaN or infinite is a gap: it is not drawn as zero, and lines do not cross
// it. Charts have a given size and show what fits; none has a minimum size. With ASCII glyphs they
// draw 7-bit text only.
package lines
