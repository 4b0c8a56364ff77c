package session

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rooftop-dev/rooftop/engine/loop"
)

// Player plays a recording through the loop at a chosen speed, with pause and seek. It has the
// methods of a Live that a screen needs; commands that would change the server are refused. The
// goroutine of Run owns the loop; the other methods may be called from any goroutine.
type Player struct {
	export func(*loop.Snapshot) ([]string, error)
	latest atomic.Pointer[loop.Snapshot]
	wake   chan struct{}

	mu          sync.Mutex // protects the fields up to resume
	pending     request
	now         time.Duration // position
	length      time.Duration // of the recording, as far as it is known
	lengthKnown bool          // length is that of the whole recording
	speed       float64       // seconds of the recording per second, 0 while paused
	resume      float64       // the speed before a pause

	// Only the goroutine of Run uses these.
	timeline  *timeline
	notes     []loop.Entry // of the player, shown after the recorded journal
	seq       uint64
	published int            // number of notes in the latest snapshot
	shown     *loop.Snapshot // the snapshot of the loop that was published last
	endNoted  bool           // a note explains why the recording ends early
}

// request collects what the other methods requested since Run last handled a request.
type request struct {
	seek   time.Duration // relative, may be negative
	notes  []loop.Entry
	export bool
	quit   bool
}

// maxSpeed bounds the speed of a player, in seconds of the recording per second.
const maxSpeed = 60

// NewPlayer returns a player at the beginning of a recording, or the error of its first lines.
// version is that of this rooftop.
func NewPlayer(rec *Recording, version string) (*Player, error) {
	t, err := newPlayback(rec, version)
	if err != nil {
		return nil, err
	}
	p := &Player{timeline: newTimeline(t), wake: make(chan struct{}, 1), speed: 1, resume: 1}
	p.publish()
	return p, nil
}

// SetExport sets the function that writes a report of a snapshot and returns the paths of its
// files. It must be called before Run; without it, Export reports false.
func (p *Player) SetExport(write func(*loop.Snapshot) (files []string, err error)) { p.export = write }

// Latest returns the snapshot at the current position.
func (p *Player) Latest() *loop.Snapshot { return p.latest.Load() }

// Do handles loop.CommandQuit and loop.CommandPause. For other commands it notes in the journal
// that a recording cannot be changed. It always returns true.
func (p *Player) Do(c loop.Command) bool {
	switch c {
	case loop.CommandQuit:
		p.request(func(r *request) { r.quit = true })
	case loop.CommandPause:
		p.mu.Lock()
		speed := 0.0
		if p.speed == 0 {
			speed = p.resume
		}
		p.mu.Unlock()
		p.Speed(speed)
	default:
		p.note(loop.Entry{Level: loop.LevelWarn, Text: recordingReadOnly})
	}
	return true
}

// Export requests a report of the current snapshot; false if one is requested already or reports
// cannot be written.
func (p *Player) Export() bool {
	if p.export == nil {
		return false
	}
	accepted := false
	p.request(func(r *request) { accepted, r.export = !r.export, true })
	return accepted
}

// Seek moves the position by a time, back if it is negative.
func (p *Player) Seek(by time.Duration) {
	p.request(func(r *request) { r.seek += by })
}

// Speed sets how many seconds of the recording are played per second, 0 to 60; 0 pauses.
func (p *Player) Speed(times float64) {
	times = min(max(times, 0), maxSpeed)
	p.request(func(*request) {
		if p.speed = times; times > 0 {
			p.resume = times
		}
	})
}

// At returns the position, the length of the recording, and the speed. The length is that of the
// part read so far until the whole length is known.
func (p *Player) At() (now, length time.Duration, speed float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now, max(p.length, p.now), p.speed
}

// request changes the pending request and wakes the goroutine of Run.
func (p *Player) request(change func(*request)) {
	p.mu.Lock()
	change(&p.pending)
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default: // a wake-up is queued already
	}
}

// note adds an entry to the journal.
func (p *Player) note(e loop.Entry) {
	p.request(func(r *request) { r.notes = append(r.notes, e) })
}

const (
	// playSlice is the number of lines to read before requests are handled again: about 50 ms of
	// work.
	playSlice = 16
	// Bounds of the time between two updates while playing.
	playMinWait = 10 * time.Millisecond
	playMaxWait = 250 * time.Millisecond
)

// Run plays until ctx ends or CommandQuit. It stops at the end of the recording and waits there. A
// damaged recording is played up to the damage. The error is always nil.
func (p *Player) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	tasks.Go(func() { p.findLength(ctx) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for head := (playhead{from: p.timeline.at, since: time.Now()}); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake:
		case <-timer.C:
		}
		r, speed := p.takeRequest()
		if r.quit {
			return nil
		}
		if r.export {
			s := p.latest.Load()
			tasks.Go(func() { p.writeReport(s) })
		}
		p.notes = append(p.notes, r.notes...)
		head = p.move(head, r.seek, speed)
		p.publish()
		timer.Stop()
		if wait, ok := p.nextUpdate(&head); ok {
			timer.Reset(wait)
		}
	}
}

// playhead is the moving position of a player.
type playhead struct {
	from  time.Duration // position in the recording at since
	since time.Time
	speed float64
	seeks bool // the position stays until the recording has been read up to it
}

// at returns the current position.
func (h *playhead) at() time.Duration {
	if h.seeks {
		return h.from
	}
	return h.from + time.Duration(float64(time.Since(h.since))*h.speed)
}

// move moves the timeline to the playhead plus by, and returns the new playhead. If the recording
// cannot be read fast enough for its speed, it is played more slowly; during a seek forward, the
// position stays until the recording has been read.
func (p *Player) move(h playhead, by time.Duration, speed float64) playhead {
	target := p.clamp(p.clamp(h.at()) + by)
	seeks := h.seeks || by > 0
	reached := p.timeline.seek(target, playSlice)
	if reached || !seeks {
		target, seeks = p.timeline.at, false
	}
	p.mu.Lock()
	p.now = p.timeline.at
	p.mu.Unlock()
	return playhead{from: target, since: time.Now(), speed: speed, seeks: seeks}
}

// clamp limits a time to the recording, as far as its length is known.
func (p *Player) clamp(t time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	// findLength only reads the beginning of each line: the lines that were parsed are more
	// accurate.
	playback := p.timeline.playback
	if next, ok := playback.next(); ok {
		p.length = max(p.length, next)
	} else if p.length = max(p.length, playback.at); playback.truncated {
		p.length = playback.at
	}
	if playback.finished || p.lengthKnown {
		t = min(t, p.length)
	}
	return max(t, 0)
}

// nextUpdate returns the time until the next update; false if nothing changes without a request.
func (p *Player) nextUpdate(h *playhead) (time.Duration, bool) {
	if h.seeks {
		return 0, true
	}
	next, ok := p.timeline.nextChange()
	if h.speed == 0 || !ok && p.timeline.at >= p.clamp(p.timeline.at+1) {
		return 0, false
	}
	if !ok {
		return playMaxWait, true
	}
	d := time.Duration(float64(next-p.timeline.at) / h.speed)
	return min(max(d, playMinWait), playMaxWait), true
}

// takeRequest returns the pending request, which it clears, and the speed.
func (p *Player) takeRequest() (request, float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.pending
	p.pending = request{}
	for i := range r.notes {
		r.notes[i].T = p.now
	}
	return r, p.speed
}

// findLength sets the length of the recording, if the file can be read twice.
func (p *Player) findLength(ctx context.Context) {
	length := p.timeline.playback.rec.length(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if length > 0 {
		p.length, p.lengthKnown = max(p.length, length), true
	}
}

// writeReport writes a report of a snapshot and notes the result in the journal.
func (p *Player) writeReport(s *loop.Snapshot) {
	text, err := writeReport(p.export, s)
	e := loop.Entry{Level: loop.LevelGood, Text: text}
	if err != nil {
		e.Level = loop.LevelBad
	}
	p.note(e)
}

// publish stores the snapshot at the current position, with the player's own notes.
func (p *Player) publish() {
	s := p.timeline.snapshot()
	if !p.endNoted && p.timeline.playback.finished && p.timeline.at >= p.timeline.playback.at {
		p.endNoted = true
		switch {
		case p.timeline.err != nil:
			p.notes = append(p.notes, loop.Entry{T: p.timeline.at, Level: loop.LevelBad, Text: p.timeline.err.Error()})
		case p.timeline.playback.truncated:
			p.notes = append(p.notes, loop.Entry{T: p.timeline.at, Level: loop.LevelWarn, Text: noteCutOff})
		}
	}
	if s == p.shown && len(p.notes) == p.published {
		return
	}
	p.shown, p.published = s, len(p.notes)
	c := *s
	p.seq++
	c.Seq = p.seq
	c.Can = canReplay()
	c.Journal = p.journal(s.Journal)
	p.latest.Store(&c)
}

// journal returns the recorded entries, followed by the player's notes.
func (p *Player) journal(recorded []loop.Entry) []loop.Entry {
	if len(p.notes) == 0 {
		return recorded
	}
	out := slices.Concat(recorded, p.notes)
	for i := max(1, len(recorded)); i < len(out); i++ {
		out[i].Seq = out[i-1].Seq + 1
	}
	return out
}

// canReplay returns the commands that are available for a recording.
func canReplay() (can [loop.NumCommands]loop.Availability) {
	for c := range can {
		can[c].Why = recordingReadOnly
	}
	can[loop.CommandPause] = loop.Availability{OK: true}
	can[loop.CommandQuit] = loop.Availability{OK: true}
	return can
}
