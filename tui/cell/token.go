package cell

// Token is what a piece of the screen means. Colour only repeats what words and
// signs say.
type Token uint8

// Tokens.
const (
	Body       Token = iota
	Strong           // headline figures
	Muted            // units, labels, what is old
	Title            // of a panel
	Border           // frames, axes, rules
	Accent           // what to look at: the recommendation, the present point
	OK               // good
	Warn             // needs a look
	Bad              // broken, worse
	Baseline         // before a change
	Trial            // after it
	Achievable       // what good software reaches
	Ideal            // what physics allows
	Key              // a key to press
	Disabled         // a key that does nothing now
	Selected         // the row under the cursor
	NumTokens
)
