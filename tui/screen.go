package tui

import (
	"context"
	"errors"
	"fmt"
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
	m := newModel(feed, controls, o)
	return m.run(ctx, m, framesPerSecond)
}

// run shows the display's model until it quits or ctx ends.
func (d *display) run(ctx context.Context, m tea.Model, fps int) error {
	// Signals end ctx: whoever called decides which. The profile is given because
	// detecting it runs a tmux command inside tmux.
	options := append([]tea.ProgramOption{
		tea.WithContext(ctx), tea.WithoutSignalHandler(), tea.WithColorProfile(d.profile), tea.WithFPS(fps),
	}, d.o.Program...)
	_, err := tea.NewProgram(m, options...).Run()
	if err != nil && ctx.Err() != nil && !errors.Is(err, tea.ErrProgramPanic) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("screen: %w", err)
	}
	return nil
}

// framesPerSecond bounds how often the terminal is written to: a key shows within
// 40 ms, and an idle screen costs less than at Bubble Tea's 60.
const framesPerSecond = 25
