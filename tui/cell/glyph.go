package cell

// Glyphs are the signs that the screen draws with: Unicode, or ASCII for
// terminals and fonts that have no other.
type Glyphs struct {
	ASCII bool
	// Levels rise from an almost empty cell to a full one.
	Levels []string
	// Bar fills a whole cell, Rest the part of a bar that is not reached.
	Bar, Rest string
	// Lines of frames and axes.
	Horizontal, Vertical, TopLeft, TopRight, BottomLeft, BottomRight, TeeLeft, TeeRight, Cross string
	// Good, Warn, Bad, Info stand before words.
	Good, Warn, Bad, Info string
	Arrow, Ellipsis, Dash string
	Point, Past           string // the present point of a plot, a past one
	Flat                  string // as before
}

// Unicode and ASCII are the two sets.
func Unicode() Glyphs {
	return Glyphs{
		Levels: []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, Bar: "█", Rest: "░",
		Horizontal: "─", Vertical: "│", TopLeft: "╭", TopRight: "╮", BottomLeft: "╰", BottomRight: "╯", TeeLeft: "├", TeeRight: "┤", Cross: "┼",
		Good: "●", Warn: "▲", Bad: "✖", Info: "·", Arrow: "→", Ellipsis: "…", Dash: "–", Point: "◆", Past: "◇", Flat: "=",
	}
}

// ASCII returns the seven-bit set.
func ASCII() Glyphs {
	return Glyphs{
		ASCII:  true,
		Levels: []string{"_", ".", ":", "-", "=", "+", "*", "#"}, Bar: "#", Rest: ".",
		Horizontal: "-", Vertical: "|", TopLeft: "+", TopRight: "+", BottomLeft: "+", BottomRight: "+", TeeLeft: "+", TeeRight: "+", Cross: "+",
		Good: "*", Warn: "!", Bad: "x", Info: ".", Arrow: "->", Ellipsis: "...", Dash: "-", Point: "O", Past: "o", Flat: "=",
	}
}
