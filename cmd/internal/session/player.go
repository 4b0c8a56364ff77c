package session

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// Player plays a recording through the loop, as fast as it is told, with a pause
// and a way back. It is what a Live is, for a file: its commands only say that the
// run is over. The goroutine of Run owns the loop; the other methods may be called
// from any.
type Player struct {
	export func(*engine.Snapshot) ([]string, error)
	latest atomic.Pointer[engine.Snapshot]
	wake   chan struct{}

	mu      sync.Mutex
	asked   request
	now, of time.Duration // where it stands, and of how much
	known   bool          // that of is all
	speed   float64
	resume  float64 // the speed before a pause

	// The rest is of Run.
	reel  *reel
	notes []engine.Entry // said by the player, beside what was recorded
	seq   uint64
	said  int              // how many of the notes were published
	shown *engine.Snapshot // what was published last, as the loop gave it
	ended bool             // that the recording ends early was said
}

// request is what was asked of a player since it looked last.
type request struct {
	seek   time.Duration
	notes  []engine.Entry
	export bool
	quit   bool
}

// maxSpeed is how fast a recording is played at most.
const maxSpeed = 60

// NewPlayer reads the beginning of a recording. Version is this rooftop's.
func NewPlayer(rec *Recording, version string) (*Player, error) {
	t, err := newTape(rec, version)
	if err != nil {
		return nil, err
	}
	p := &Player{reel: newReel(t), wake: make(chan struct{}, 1), speed: 1, resume: 1}
	p.show()
	return p, nil
}

// Exports says how a report of a snapshot is written, before Run; a player
// without it writes none.
func (p *Player) Exports(write func(*engine.Snapshot) (files []string, err error)) { p.export = write }

// Latest returns the snapshot at the present place.
func (p *Player) Latest() *engine.Snapshot { return p.latest.Load() }

// Do takes engine.CommandQuit and engine.CommandPause; the others say in the
// journal that a recording cannot be changed.
func (p *Player) Do(c engine.Command) bool {
	switch c {
	case engine.CommandQuit:
		p.ask(func(r *request) { r.quit = true })
	case engine.CommandPause:
		p.mu.Lock()
		speed := 0.0
		if p.speed == 0 {
			speed = p.resume
		}
		p.mu.Unlock()
		p.Speed(speed)
	default:
		p.say(engine.Entry{Level: engine.LevelWarn, Text: noHandsRecording})
	}
	return true
}

// Export implements the controls of a screen: a recording writes its report too.
func (p *Player) Export() bool {
	if p.export == nil {
		return false
	}
	taken := false
	p.ask(func(r *request) { taken, r.export = !r.export, true })
	return taken
}

// Seek moves by a time, back where it is negative.
func (p *Player) Seek(by time.Duration) {
	p.ask(func(r *request) { r.seek += by })
}

// Speed sets how many seconds of the recording pass in one, 60 at most; 0 stops
// it.
func (p *Player) Speed(times float64) {
	times = min(max(times, 0), maxSpeed)
	p.ask(func(*request) {
		if p.speed = times; times > 0 {
			p.resume = times
		}
	})
}

// At is where it stands, of how much, and how fast it runs. How much there is may
// be found out only while it plays.
func (p *Player) At() (now, of time.Duration, speed float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now, max(p.of, p.now), p.speed
}

// ask leaves a request for the goroutine of Run.
func (p *Player) ask(change func(*request)) {
	p.mu.Lock()
	change(&p.asked)
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default: // it is awake
	}
}

// say leaves an entry for the journal.
func (p *Player) say(e engine.Entry) {
	p.ask(func(r *request) { r.notes = append(r.notes, e) })
}

const (
	// playSlice is how many lines are read before somebody may want something else:
	// some fifty milliseconds.
	playSlice = 16
	// Bounds of the time between two looks at the clock while it plays.
	playLeast = 10 * time.Millisecond
	playMost  = 250 * time.Millisecond
)

// Run plays until ctx ends or it is told to quit. It stops at the end of the
// recording and waits there. One that is damaged is played as far as it goes.
func (p *Player) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	tasks.Go(func() { p.measure(ctx) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for hand := (hand{from: p.reel.at, since: time.Now()}); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake:
		case <-timer.C:
		}
		r, speed := p.take()
		if r.quit {
			return nil
		}
		if r.export {
			s := p.latest.Load()
			tasks.Go(func() { p.write(s) })
		}
		p.notes = append(p.notes, r.notes...)
		hand = p.move(hand, r.seek, speed)
		p.show()
		timer.Stop()
		if wait, ok := p.wait(&hand); ok {
			timer.Reset(wait)
		}
	}
}

// hand is the hand of a player's clock: it was at a time of the recording at an
// instant of ours, and moves so fast.
type hand struct {
	from  time.Duration
	since time.Time
	speed float64
	seeks bool // it stands until the recording has been read up to it
}

func (h *hand) at() time.Duration {
	if h.seeks {
		return h.from
	}
	return h.from + time.Duration(float64(time.Since(h.since))*h.speed)
}

// move moves to where the hand is, and by a time beside it, and returns the hand.
// A recording that cannot be read as fast as it is to be played is played slower;
// one that is sought in stands still until it has been read.
func (p *Player) move(h hand, by time.Duration, speed float64) hand {
	target := p.within(p.within(h.at()) + by)
	seeks := h.seeks || by > 0
	there := p.reel.to(target, playSlice)
	if there || !seeks {
		target, seeks = p.reel.at, false
	}
	p.mu.Lock()
	p.now = p.reel.at
	p.mu.Unlock()
	return hand{from: target, since: time.Now(), speed: speed, seeks: seeks}
}

// within keeps a time inside the recording, as far as its length is known.
func (p *Player) within(t time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	// The length is that of the lines' beginnings: what was read knows better.
	tape := p.reel.tape
	if next, ok := tape.next(); ok {
		p.of = max(p.of, next)
	} else if p.of = max(p.of, tape.at); tape.cut {
		p.of = tape.at
	}
	if tape.over || p.known {
		t = min(t, p.of)
	}
	return max(t, 0)
}

// wait is the time until there is something to do; false where that is only when
// somebody asks.
func (p *Player) wait(h *hand) (time.Duration, bool) {
	if h.seeks {
		return 0, true
	}
	next, ok := p.reel.next()
	if h.speed == 0 || !ok && p.reel.at >= p.within(p.reel.at+1) {
		return 0, false
	}
	if !ok {
		return playMost, true
	}
	d := time.Duration(float64(next-p.reel.at) / h.speed)
	return min(max(d, playLeast), playMost), true
}

// take takes what was asked for.
func (p *Player) take() (request, float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.asked
	p.asked = request{}
	for i := range r.notes {
		r.notes[i].T = p.now
	}
	return r, p.speed
}

// measure finds out how much there is to play.
func (p *Player) measure(ctx context.Context) {
	of := p.reel.tape.rec.length(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if of > 0 {
		p.of, p.known = max(p.of, of), true
	}
}

// write writes a report.
func (p *Player) write(s *engine.Snapshot) {
	text, err := writeReport(p.export, s)
	e := engine.Entry{Level: engine.LevelGood, Text: text}
	if err != nil {
		e.Level = engine.LevelBad
	}
	p.say(e)
}

// show publishes what there is to see where it stands.
func (p *Player) show() {
	s := p.reel.snapshot()
	if !p.ended && p.reel.tape.over && p.reel.at >= p.reel.tape.at {
		p.ended = true
		switch {
		case p.reel.err != nil:
			p.notes = append(p.notes, engine.Entry{T: p.reel.at, Level: engine.LevelBad, Text: p.reel.err.Error()})
		case p.reel.tape.cut:
			p.notes = append(p.notes, engine.Entry{T: p.reel.at, Level: engine.LevelWarn, Text: noteCutOff})
		}
	}
	if s == p.shown && len(p.notes) == p.said {
		return
	}
	p.shown, p.said = s, len(p.notes)
	c := *s
	p.seq++
	c.Seq = p.seq
	c.Can = canReplay()
	c.Journal = p.journal(s.Journal)
	p.latest.Store(&c)
}

// journal is what was recorded, and behind it what the player said.
func (p *Player) journal(recorded []engine.Entry) []engine.Entry {
	if len(p.notes) == 0 {
		return recorded
	}
	out := slices.Concat(recorded, p.notes)
	for i := max(1, len(recorded)); i < len(out); i++ {
		out[i].Seq = out[i-1].Seq + 1
	}
	return out
}

// canReplay is what a person can do to a recording.
func canReplay() (can [engine.NumCommands]engine.Availability) {
	for c := range can {
		can[c].Why = noHandsRecording
	}
	can[engine.CommandPause] = engine.Availability{OK: true}
	can[engine.CommandQuit] = engine.Availability{OK: true}
	return can
}
