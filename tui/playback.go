package tui

import "strconv"

// speeds are how fast a recording runs.
func speeds() []float64 { return []float64{1, 2, 5, 10, 20, 30, 60} }

// readTape looks where the recording stands.
func (m *model) readTape() {
	if m.o.Playback == nil {
		return
	}
	t := tape{resume: 1}
	if m.look.tape != nil {
		t.resume = m.look.tape.resume
	}
	t.now, t.of, t.speed = m.o.Playback.At()
	if t.speed > 0 {
		t.resume = t.speed
	}
	if m.look.tape == nil || *m.look.tape != t {
		m.look.tape, m.changed = &t, true
	}
}

// speed chooses the next faster or slower speed.
func (m *model) speed(by int) {
	now := m.look.tape.resume
	list := speeds()
	at := 0
	for i, v := range list {
		if v <= now {
			at = i
		}
	}
	at = min(max(0, at+by), len(list)-1)
	m.look.tape.resume = list[at]
	m.o.Playback.Speed(list[at])
	m.readTape()
}

// stopTape halts the recording, or goes on at the speed before.
func (m *model) stopTape() {
	if m.look.tape.speed > 0 {
		m.o.Playback.Speed(0)
	} else {
		m.o.Playback.Speed(max(1, m.look.tape.resume))
	}
	m.readTape()
}

// ended says that there is no more to play.
func (t *tape) ended() bool { return t.of > 0 && t.now >= t.of }

func speedOf(t *tape) string {
	switch {
	case t.ended():
		return "at its end"
	case t.speed == 0:
		return "halted"
	}
	return strconv.FormatFloat(t.speed, 'f', -1, 64) + "x"
}
