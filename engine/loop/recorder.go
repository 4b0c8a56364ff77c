package loop

import "time"

// recorder collects the output of a step: actions, and the snapshot's record of them.
type recorder struct {
	now     time.Duration
	out     []Action
	journal bounded[Entry]
	points  bounded[Point]
	marks   bounded[Mark]
}

// addAction adds an action to the output of the step.
func (r *recorder) addAction(a Action) { r.out = append(r.out, a) }

// emit adds an event to the output, and its text, if any, to the journal.
func (r *recorder) emit(level Level, e Event) {
	e.T = r.now
	if e.Text != "" {
		r.writeEntry(level, e.Kind, e.Text)
	}
	r.addAction(Emit{Event: e})
}

// writeEntry adds an entry to the journal.
func (r *recorder) writeEntry(level Level, kind EventKind, text string) {
	r.record(Entry{Level: level, Kind: kind, Text: text})
}

// record sets the number and time of an entry and adds it to the journal.
func (r *recorder) record(e Entry) {
	e.Seq, e.T = len(r.journal.all)+r.journal.gone, r.now
	r.journal.add(e)
}

func (r *recorder) addMark(kind MarkKind, text string) {
	r.marks.add(Mark{T: r.now, Kind: kind, Text: text})
}

func (r *recorder) noted(in Noted) {
	if in.Warn {
		r.emit(LevelWarn, Event{Kind: EventError, Text: in.Text})
		return
	}
	e := Entry{Level: LevelInfo, Noted: true, Text: in.Text}
	if in.Bad {
		e.Level = LevelBad
	}
	r.record(e)
}
