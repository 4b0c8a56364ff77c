package tui

import (
	"context"
	"time"

	"charm.land/bubbletea/v2"

	"github.com/rooftop-dev/rooftop/engine"
)

// Feed hands out the latest snapshot, nil before the first. It must not block.
type Feed interface{ Latest() *engine.Snapshot }

// Controls takes commands. Do must not block; false says that the session could
// not take it now.
type Controls interface {
	Do(c engine.Command) bool
	// Export asks for a report of what is seen now. The journal tells what became
	// of it.
	Export() bool
}

// Playback is what a recording can be told beyond Controls.
type Playback interface {
	// Seek moves by a time, back where it is negative.
	Seek(by time.Duration)
	// Speed sets how many seconds of the recording pass in one; 0 stops it.
	Speed(times float64)
	// At is where it stands, of how much, and how fast it runs.
	At() (now, of time.Duration, speed float64)
}

// Options say how the screen is drawn.
type Options struct {
	ASCII    bool
	Color    string        // "auto", "always" or "never"; auto honours NO_COLOR
	Theme    string        // "auto", "dark" or "light"
	Refresh  time.Duration // between frames; 0 is 250 ms
	Playback Playback      // nil for a live server
	// Program adds to the options of the Bubble Tea program: tests set input,
	// output, size and environment.
	Program []tea.ProgramOption
	Env     func(string) (string, bool) // nil is an empty environment
}

// Run shows the screen until the run ends, the person quits, or ctx ends. The
// terminal is as it was when it returns. The error is that of the terminal.
func Run(ctx context.Context, feed Feed, controls Controls, o Options) error {
	_, err := tea.NewProgram(nil, o.Program...).Run()
	return err
}
