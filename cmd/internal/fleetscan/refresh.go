package fleetscan

import (
	"context"
	"sync"
	"time"

	"github.com/rooftop-dev/rooftop/engine/fleet"
)

// Read diagnoses servers, ranked. It reports to progress the number of servers done and of all.
type Read func(ctx context.Context, progress func(done, all int)) ([]fleet.Server, error)

// List is a list of servers that is read again and again. If a reading fails, the last successful one is kept and
// marked.
type List struct {
	read  Read
	clock func() time.Duration
	again chan struct{} // asks for a reading before the pause is over

	mu    sync.Mutex
	live  fleet.Live
	err   error // of the latest reading
	shown *fleet.Live
}

// New returns a list without servers. source says where they are read from, every is the pause between two
// readings, and clock is the time since the start.
func New(source string, every time.Duration, clock func() time.Duration, read Read) *List {
	return &List{read: read, clock: clock, again: make(chan struct{}, 1), live: fleet.Live{Source: source, Every: every}}
}

// Run reads until ctx ends.
func (l *List) Run(ctx context.Context) {
	for {
		l.change(func(s *fleet.Live) { s.Reading, s.Began, s.Done, s.All = true, l.clock(), 0, 0 })
		servers, err := l.read(ctx, func(done, all int) {
			l.change(func(s *fleet.Live) { s.Done, s.All = max(s.Done, done), all })
		})
		if ctx.Err() != nil {
			return
		}
		l.change(func(s *fleet.Live) {
			s.Reading, l.err = false, err
			if err != nil {
				s.Failed, s.FailedAt = err.Error(), l.clock()
				return
			}
			s.Servers, s.Read, s.Failed = servers, l.clock(), ""
		})
		select {
		case <-ctx.Done():
			return
		case <-l.again:
		case <-time.After(l.live.Every):
		}
	}
}

// change changes the state.
func (l *List) change(by func(*fleet.Live)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	by(&l.live)
	l.shown = nil
}

// Again begins the next reading at once. It never blocks.
func (l *List) Again() {
	select {
	case l.again <- struct{}{}:
	default:
	}
}

// Latest returns the state; another one only after a change, or a second.
func (l *List) Latest() *fleet.Live {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock()
	if l.shown == nil || now.Truncate(time.Second) != l.shown.Now.Truncate(time.Second) {
		shown := l.live
		shown.Now = now
		l.shown = &shown
	}
	return l.shown
}

// Err returns the error of the latest reading, nil if it succeeded.
func (l *List) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
