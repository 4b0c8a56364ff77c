package cell

// Glyphs are the symbols of the screen, in Unicode, or in ASCII for terminals and fonts without
// Unicode.
type Glyphs struct {
	ASCII bool
	// Levels rise from an almost empty cell to a full one.
	Levels []string
	// Bar fills a whole cell; Rest fills the remaining part of a bar.
	Bar, Rest string
	// Lines of frames and axes.
	Horizontal, Vertical, TopLeft, TopRight, BottomLeft, BottomRight, TeeLeft, TeeRight string
	// Good, Warn, Bad and Info mark a text with its tone.
	Good, Warn, Bad, Info string
	Ellipsis, Dash        string
	Point, Past           string // the current point of a plot, a past one
	Flat                  string // unchanged
}

// Unicode returns the Unicode set.
func Unicode() Glyphs {
	return Glyphs{
		Levels: []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, Bar: "█", Rest: "░",
		Horizontal: "─", Vertical: "│", TopLeft: "╭", TopRight: "╮", BottomLeft: "╰", BottomRight: "╯", TeeLeft: "├", TeeRight: "┤",
		Good: "●", Warn: "▲", Bad: "✖", Info: "·", Ellipsis: "…", Dash: "–", Point: "◆", Past: "◇", Flat: "=",
	}
}

// ASCII returns the 7-bit set.
func ASCII() Glyphs {
	return Glyphs{
		ASCII:  true,
		Levels: []string{"_", ".", ":", "-", "=", "+", "*", "#"}, Bar: "#", Rest: ".",
		Horizontal: "-", Vertical: "|", TopLeft: "+", TopRight: "+", BottomLeft: "+", BottomRight: "+", TeeLeft: "+", TeeRight: "+",
		Good: "*", Warn: "!", Bad: "x", Info: ".", Ellipsis: "...", Dash: "-", Point: "O", Past: "o", Flat: "=",
	}
}
