package session

import (
	"context"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// Player plays a recording through the loop, as fast as it is told, with a pause
// and a way back. It is what a Live is, for a file: its commands only say that the
// run is over.
type Player struct{}

// NewPlayer reads a recording. Version is this rooftop's.
func NewPlayer(rec *Recording, version string) (*Player, error) { return &Player{}, nil }

// Run plays until ctx ends. It stops at the end of the recording and waits there.
func (p *Player) Run(ctx context.Context) error { return nil }

// Latest returns the snapshot at the present place.
func (p *Player) Latest() *engine.Snapshot { return nil }

// Do takes engine.CommandQuit and engine.CommandPause; the others say in the
// journal that a recording cannot be changed.
func (p *Player) Do(c engine.Command) bool { return false }

// Export implements the controls of a screen: a recording writes its report too.
func (p *Player) Export() bool { return false }

// Seek moves by a time, back where it is negative.
func (p *Player) Seek(by time.Duration) {}

// Speed sets how many seconds of the recording pass in one; 0 stops it.
func (p *Player) Speed(times float64) {}

// At is where it stands, of how much, and how fast it runs.
func (p *Player) At() (now, of time.Duration, speed float64) { return 0, 0, 0 }
