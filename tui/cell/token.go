package cell

import "github.com/rooftop-dev/rooftop/engine/page"

// Token is the meaning of a piece of the screen: a tone of a page, or one of the screen's own.
// Colours only repeat what words and symbols express.
type Token = page.Tone

// Tones of pages.
const (
	Body   = page.Body
	Strong = page.Strong // headline figures
	Muted  = page.Muted  // units, labels, old values
	Accent = page.Accent // draws attention: the recommendation, the current point
	OK     = page.OK     // good
	Warn   = page.Warn   // needs attention
	Bad    = page.Bad    // broken, worse
)

// Tokens of the screen alone.
const (
	Title      = Bad + 1 + iota // title of a panel
	Border                      // frames, axes, rules
	Baseline                    // before a change
	Trial                       // after it
	Achievable                  // what good software reaches
	Ideal                       // what physics allows
	Key                         // a key that works now
	Disabled                    // a key that does nothing now
	Selected                    // the row under the cursor
	NumTokens
)
