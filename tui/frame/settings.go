package frame

import (
	"context"
	"errors"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rooftop-dev/rooftop/tui/cell"
)

// ViewID is the index of a view. Digits choose it.
type ViewID uint8

// maxViews is the maximum number of views of a screen.
const maxViews = 6

// Settings are what the user has set.
type Settings struct {
	Glyphs  cell.Glyphs
	View    ViewID
	Scroll  [maxViews]int // first visible line
	Filter  string        // what is searched for in every view
	Typing  bool          // the filter is being typed
	Frozen  bool          // the display stands still
	Palette *Palette      // open if not nil
	Window  time.Duration // that charts over time cover; 0 is the whole run

	Over   Overlay // the open overlay
	Yes    bool    // whether enter answers yes to a question
	Ask    Dialog  // the question of OverlayAsk or the text of OverlayText
	Down   int     // first visible line of the overlay
	Notice Remark  // shown in the footer for some seconds
	Tape   *Tape   // nil for a live server
}

// Overlay is what covers a view.
type Overlay uint8

// Overlays.
const (
	OverlayNone Overlay = iota
	OverlayHelp
	OverlayAsk  // a question with yes and no
	OverlayText // something to read, such as the copied command
)

// Remark is a sentence with its token.
type Remark struct {
	Token cell.Token
	Text  string
}

// Tape is the position in a recording.
type Tape struct {
	Now, Total time.Duration
	Speed      float64 // multiple of real time; 0 is paused
	Resume     float64 // speed to resume with
}

// Playback controls a recording.
type Playback interface {
	// Seek moves by a duration, backwards if it is negative.
	Seek(by time.Duration)
	// Speed sets the speed as a multiple of real time; 0 pauses.
	Speed(times float64)
	// At returns the position, the total length and the speed.
	At() (now, total time.Duration, speed float64)
}

// Options control how the screen is drawn.
type Options struct {
	ASCII    bool
	Color    string        // "auto", "always" or "never"; auto honours NO_COLOR
	Theme    string        // "auto", "dark" or "light"
	Refresh  time.Duration // between two reads of the run; 0 is 250 ms
	NoMouse  bool          // leaves the mouse to the terminal until a key turns it on
	Playback Playback      // nil for a live server
	// Program adds options of the Bubble Tea program: tests set input, output, size and
	// environment.
	Program []tea.ProgramOption
	Env     func(string) (string, bool) // looks up an environment variable; nil is an empty environment
}

// framesPerSecond limits how often the terminal is written to. A key press shows within 100 ms, and
// an idle screen wakes up less often than at Bubble Tea's 60.
const framesPerSecond = 10

// widest and tallest limit the size of a terminal that is believed, in cells: a wrong or hostile one claims 65535 × 65535,
// and a sheet of that takes gigabytes.
const widest, tallest = 1000, 500

// believed limits the size of the terminal.
func believed(_ tea.Model, msg tea.Msg) tea.Msg {
	if size, ok := msg.(tea.WindowSizeMsg); ok {
		return tea.WindowSizeMsg{Width: min(size.Width, widest), Height: min(size.Height, tallest)}
	}
	return msg
}

// Show runs the display's model until it quits or ctx ends. It returns nil if ctx ended, unless the
// program panicked.
func (d *Display) Show(ctx context.Context, m tea.Model) error {
	// Signals end ctx; the caller decides which. The profile is given because detecting it runs a
	// tmux command inside tmux.
	options := append([]tea.ProgramOption{
		tea.WithContext(ctx), tea.WithoutSignalHandler(), tea.WithColorProfile(d.profile), tea.WithFPS(framesPerSecond), tea.WithFilter(believed),
	}, d.Options.Program...)
	_, err := tea.NewProgram(m, options...).Run()
	if err != nil && ctx.Err() != nil && !errors.Is(err, tea.ErrProgramPanic) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("screen: %w", err)
	}
	return nil
}
