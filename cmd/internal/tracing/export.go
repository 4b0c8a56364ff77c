package tracing

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

	"github.com/rooftop-dev/rooftop/cmd/internal/atomicfile"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// maxRecent limits the events that are kept for files, because a live trace has no end: 48 MB of
// memory. Figures cover all events.
const maxRecent = 1 << 20

// recentEvents is a ring buffer of the newest events.
type recentEvents struct {
	most   int
	events []optrace.Event
	oldest int // index of the oldest event when the buffer is full
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

// list returns a copy of the events, the oldest first.
func (r *recentEvents) list() []optrace.Event {
	return slices.Concat(r.events[r.oldest:], r.events[:r.oldest])
}

// span returns the times of the oldest and the newest event.
func (r *recentEvents) span() (from, to time.Duration) {
	n := len(r.events)
	if n == 0 {
		return 0, 0
	}
	return r.events[r.oldest%n].At, r.events[(r.oldest+n-1)%n].At
}

// leftOut returns how many events were counted but are not in the files.
func (l *liveTrace) leftOut() int64 { return max(0, l.collector.count-int64(len(l.window.events))) }

// keptPart describes which part of a trace its files contain, "" if they have all events.
func keptPart(c *optrace.Coverage) string {
	if c.LeftOut <= 0 {
		return ""
	}
	text := fmt.Sprintf("the newest of its %d events alone, not %d before them", c.Events, c.LeftOut)
	if c.KeptFrom.OK && c.KeptTo.OK {
		text += fmt.Sprintf(": from %.1f to %.1f s of the trace", c.KeptFrom.V, c.KeptTo.V)
	}
	return text
}

// gapKept is the [optrace.Gap.What] of a recording with only a part of a trace.
const gapKept = "what came before"

// export writes files of what was recorded so far, while recording continues.
func (l *liveTrace) export() {
	l.notice = "" // show the same notice again as a new one
	if !l.ended {
		l.summarize()
	}
	if l.summary == nil {
		l.notice = "Nothing was recorded yet, so there is nothing to export."
		return
	}
	t := l.traced()
	l.errands.Go(func() {
		files, err := writeTraced(l.o.exportDir, l.o.owner(), t)
		l.enqueue(func() {
			l.files = append(l.files, files...)
			if err != nil {
				l.notice = "Some files were not exported: " + err.Error()
				return
			}
			l.notice = "Exported " + exportedWords(files)
			if held := keptPart(&t.summary.Coverage); held != "" {
				l.notice += "; the last two have " + held
			}
		})
	})
}

// traced returns a copy of what was recorded so far that does not change: tables grow only at their
// ends, but readings of counters are overwritten.
func (l *liveTrace) traced() *traced {
	tables := *l.source.Tables()
	tables.Counters = slices.Clone(tables.Counters)
	events := l.window.list()
	graph := l.graph
	r := l.recording()
	r.Events, r.Tables = events, &tables
	if len(events) > 0 {
		r.Begin = events[0].At
		r.End = max(r.End, events[len(events)-1].At)
	}
	if held := keptPart(&l.summary.Coverage); held != "" {
		g := optrace.Gap{What: gapKept, Why: "the screen that exported this kept " + held, Next: "rooftop trace --save records all of it"}
		r.Gaps = append(slices.Clone(r.Gaps), g)
	}
	r.Origin = time.Now().Add(r.Begin - r.End)
	r.Processes, r.Reader = maps.Clone(l.collector.names), l.collector.recording.Reader
	return &traced{recording: r, summary: l.summary, newest: func() optrace.LiveGraph { return graph }}
}

// recording returns the data of the trace without its events.
func (l *liveTrace) recording() *optrace.Recording {
	return &optrace.Recording{
		Target: l.target, Peak: l.peak, Detail: l.detail, Observer: l.observer, Gaps: l.gaps,
		Dropped: l.lost, LeftOut: l.leftOut(), End: l.now(), HostLoad: l.load,
	}
}

// tracedFormat is a file of an export, with the suffix of its name.
type tracedFormat struct {
	end  string
	fill func(*traced) func(io.Writer) error
}

// tracedFormats are the files of an export.
var tracedFormats = []tracedFormat{
	{".json", func(t *traced) func(io.Writer) error {
		return func(w io.Writer) error { return document.WriteTrace(w, t.document()) }
	}},
	{".html", func(t *traced) func(io.Writer) error { return t.html }},
	{".trace.json", func(t *traced) func(io.Writer) error { return t.chrome }},
	{Suffix, func(t *traced) func(io.Writer) error { return t.save }},
}

// writeTraced writes a trace in every format into a directory, for an owner, under one name with a
// number appended if that is taken. A failing file does not prevent the others.
func writeTraced(dir string, owner *atomicfile.Owner, t *traced) (files []string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.Join(err, fmt.Errorf("internal error: %v", p))
		}
	}()
	name, err := freeName(filepath.Join(dir, "rooftop-trace-"+time.Now().Format(cli.StampLayout)))
	if err != nil {
		return nil, err
	}
	var failed []error
	for _, f := range tracedFormats {
		path := name + f.end
		if err := owner.Write(path, atomicfile.Mode(path, 0o600), f.fill(t)); err != nil {
			failed = append(failed, err)
			continue
		}
		files = append(files, path)
	}
	return files, errors.Join(failed...)
}

// freeName returns a name under which no file of an export exists.
func freeName(base string) (string, error) {
	for n := 1; n <= cli.MaxTries; n++ {
		name := cli.Numbered(base, n)
		taken := func(f tracedFormat) bool {
			_, err := os.Lstat(name + f.end)
			return !errors.Is(err, fs.ErrNotExist)
		}
		if !slices.ContainsFunc(tracedFormats, taken) {
			return name, nil
		}
	}
	return "", fmt.Errorf("%s and %d names like it are taken, or their directory cannot be read", base, cli.MaxTries-1)
}

// exportedWords lists the files of one export in a line.
func exportedWords(files []string) string {
	text := files[0]
	for i := range files[1:] {
		text += ", " + tracedFormats[i+1].end
	}
	return text
}
