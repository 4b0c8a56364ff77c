package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/report"
	"github.com/rooftop-dev/rooftop/cmd/internal/wholefile"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// maxRecent bounds the newest events that are kept for files, while a trace goes on as
// long as a person likes: 48 MB of memory. Figures are of all events.
const maxRecent = 1 << 20

// recentEvents are the newest events.
type recentEvents struct {
	most   int
	events []optrace.Event
	oldest int // where the oldest lies once there is no more room
}

func (r *recentEvents) add(events []optrace.Event) {
	for len(events) > 0 {
		if room := r.most - len(r.events); room > 0 {
			n := min(room, len(events))
			r.events, events = append(r.events, events[:n]...), events[n:]
			continue
		}
		n := copy(r.events[r.oldest:], events)
		r.oldest, events = (r.oldest+n)%r.most, events[n:]
	}
}

// list is a copy of them, the oldest first.
func (r *recentEvents) list() []optrace.Event {
	return slices.Concat(r.events[r.oldest:], r.events[:r.oldest])
}

// span is from the oldest of them to the newest.
func (r *recentEvents) span() (from, to time.Duration) {
	n := len(r.events)
	if n == 0 {
		return 0, 0
	}
	return r.events[r.oldest%n].At, r.events[(r.oldest+n-1)%n].At
}

// leftOut is how many events were counted of which there was no room for files.
func (l *liveTrace) leftOut() int64 { return max(0, l.keeper.count-int64(len(l.window.events))) }

// keptWords say which part of a trace the files of its events hold, "" where they hold all.
func keptWords(c *optrace.Coverage) string {
	if c.LeftOut <= 0 {
		return ""
	}
	text := fmt.Sprintf("the newest of its %d events alone, not %d before them", c.Events, c.LeftOut)
	if c.KeptFrom.OK && c.KeptTo.OK {
		text += fmt.Sprintf(": from %.1f to %.1f s of the trace", c.KeptFrom.V, c.KeptTo.V)
	}
	return text
}

// gapKept is [optrace.Gap.What] of a recording that holds a part of a trace alone.
const gapKept = "what came before"

// export writes files of what was recorded so far, while events go on to be taken in.
func (l *liveTrace) export() {
	l.notice = "" // one that comes again is news
	if !l.ended {
		l.reckon()
	}
	if l.summary == nil {
		l.notice = "Nothing was recorded yet, so that there is nothing to export."
		return
	}
	t := l.traced()
	l.errands.Go(func() {
		files, err := writeTraced(l.o.exportDir, l.o.owner(), t)
		l.wish(func() {
			l.files = append(l.files, files...)
			if err != nil {
				l.notice = "Not all was exported: " + err.Error()
				return
			}
			l.notice = "Exported " + exportedWords(files)
			if held := keptWords(&t.summary.Coverage); held != "" {
				l.notice += "; the last two hold " + held
			}
		})
	})
}

// traced is what was recorded so far, apart from what goes on to change: tables grow at
// their ends, and readings of counters alone are overwritten.
func (l *liveTrace) traced() *traced {
	tables := *l.source.Tables()
	tables.Counters = slices.Clone(tables.Counters)
	events := l.window.list()
	graph := l.graph
	r := &optrace.Recording{
		Target: l.target, Roof: l.roof, Detail: l.detail, Events: events, Tables: &tables, Observer: l.observer, Gaps: l.gaps,
		Dropped: l.lost, LeftOut: l.leftOut(), End: l.now(), HostLoad: l.load,
	}
	if len(events) > 0 {
		r.Begin = events[0].At
		r.End = max(r.End, events[len(events)-1].At)
	}
	if held := keptWords(&l.summary.Coverage); held != "" {
		g := optrace.Gap{What: gapKept, Why: "the screen that exported this kept " + held, Next: "rooftop trace --save records all of it"}
		r.Gaps = append(slices.Clone(r.Gaps), g)
	}
	r.Origin = time.Now().Add(r.Begin - r.End)
	r.Processes, r.Reader = maps.Clone(l.keeper.names), l.keeper.recording.Reader
	return &traced{recording: r, summary: l.summary, newest: func() optrace.LiveGraph { return graph }}
}

// tracedFormat is a file of an export, by the end of its name.
type tracedFormat struct {
	end  string
	fill func(*traced) func(io.Writer) error
}

// tracedFormats are the files of an export.
var tracedFormats = []tracedFormat{
	{".json", func(t *traced) func(io.Writer) error {
		return func(w io.Writer) error { return report.WriteTraceJSON(w, t.document()) }
	}},
	{".html", func(t *traced) func(io.Writer) error { return t.html }},
	{".trace.json", func(t *traced) func(io.Writer) error { return t.chrome }},
	{recordingSuffix, func(t *traced) func(io.Writer) error { return t.save }},
}

// writeTraced writes a trace in every format into a directory, for an owner, under one name with a
// number behind it where that is taken. One file that fails keeps it from no other.
func writeTraced(dir string, owner *wholefile.Owner, t *traced) (files []string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.Join(err, fmt.Errorf("internal error: %v", p))
		}
	}()
	name, err := freeName(filepath.Join(dir, "rooftop-trace-"+time.Now().Format(stampLayout)))
	if err != nil {
		return nil, err
	}
	var failed []error
	for _, f := range tracedFormats {
		path := name + f.end
		if err := owner.Write(path, wholefile.Mode(path, 0o600), f.fill(t)); err != nil {
			failed = append(failed, err)
			continue
		}
		files = append(files, path)
	}
	return files, errors.Join(failed...)
}

// freeName is a name under which no file of an export exists.
func freeName(base string) (string, error) {
	for n := 1; n <= maxTries; n++ {
		name := numbered(base, n)
		taken := func(f tracedFormat) bool {
			_, err := os.Lstat(name + f.end)
			return !errors.Is(err, fs.ErrNotExist)
		}
		if !slices.ContainsFunc(tracedFormats, taken) {
			return name, nil
		}
	}
	return "", fmt.Errorf("%s and %d names like it are taken, or their directory cannot be read", base, maxTries-1)
}

// exportedWords name the files of one export in a line.
func exportedWords(files []string) string {
	text := files[0]
	for i := range files[1:] {
		text += ", " + tracedFormats[i+1].end
	}
	return text
}
