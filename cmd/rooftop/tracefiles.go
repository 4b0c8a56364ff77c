package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/chrometrace"
	"github.com/rooftop-dev/rooftop/cmd/internal/report"
	"github.com/rooftop-dev/rooftop/cmd/internal/wholefile"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// finish puts a trace everywhere that was asked for. One place that fails keeps it
// from no other.
func (o *traceOptions) finish(w *world, t *traced) error {
	var failed, saved []string
	for i, fill := range []func(io.Writer) error{t.save, t.chrome, t.dot, t.svg, t.html} {
		file := o.outputs()[i]
		if file.path == "" {
			continue
		}
		write := func() error { return o.owner().Write(file.path, wholefile.Mode(file.path, 0o600), fill) }
		if i == 0 && t.summary.Empty() && holds(file.path) {
			t.spare(w, file.path)
			continue
		}
		if i == 0 && t.saving != nil {
			write = func() error { return t.saving.close(t.recording) }
		}
		if err := write(); err != nil {
			failed = append(failed, err.Error())
		} else {
			saved = append(saved, file.path)
		}
	}
	err := t.print(w, o)
	if _, tty := terminal(w.stderr); tty && len(saved) > 0 {
		fmt.Fprintln(w.stderr, "saved:", strings.Join(saved, ", "))
	}
	switch {
	case len(failed) > 0:
		if err != nil {
			failed = append(failed, err.Error())
		}
		return fail(exitError, errors.New(strings.Join(failed, "; and ")))
	case err != nil:
		return fail(exitError, err)
	}
	return nil
}

// holds says that a path names a file with something in it.
func holds(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() > 0
}

// spare leaves the recording that is there where it is, instead of one of nothing.
func (t *traced) spare(w *world, path string) {
	if t.saving != nil {
		t.saving.discard()
	}
	g := optrace.Gap{What: "the recording", Why: path + " is left as it was: there is nothing in this trace that could take its place", Next: "name another file to keep it all the same"}
	t.summary.Gaps = append(t.summary.Gaps, g)
	fmt.Fprintf(w.stderr, "rooftop: %s\n", g.Why)
}

// print writes the report or the document.
func (t *traced) print(w *world, o *traceOptions) error {
	if o.json {
		return report.WriteTraceJSON(w.stdout, t.document())
	}
	return report.WriteTrace(w.stdout, t.summary, o.style(w))
}

func (t *traced) document() *report.Trace {
	return &report.Trace{Version: buildVersion(), Started: t.recording.Origin, Summary: t.summary}
}

func (t *traced) save(w io.Writer) error {
	z := gzip.NewWriter(w)
	if err := optrace.WriteRecording(z, t.recording); err != nil {
		return err
	}
	return z.Close()
}

func (t *traced) chrome(w io.Writer) error {
	return chrometrace.WriteOperators(w, t.recording, nil, nil)
}

func (t *traced) dot(w io.Writer) error {
	dag, err := t.dag()
	if err != nil {
		return err
	}
	return report.WriteDOT(w, t.recording.Tables, dag, t.summary)
}

func (t *traced) svg(w io.Writer) error {
	dag, err := t.dag()
	if err != nil {
		return err
	}
	return report.WriteDAGSVG(w, t.recording.Tables, dag, t.summary)
}

func (t *traced) html(w io.Writer) error {
	page := &report.TracePage{Trace: *t.document(), Tables: t.recording.Tables}
	if dag, err := t.dag(); err == nil {
		page.DAG = dag
	}
	graph := optrace.MedianGraph(t.recording)
	if len(graph.Lanes) == 0 { // its events are not kept any more
		graph = t.newest()
	}
	if len(graph.Lanes) > 0 {
		page.Graph = &graph
	}
	return report.WriteTraceHTML(w, page)
}

// dag is the graph that was computed most often.
func (t *traced) dag() (*optrace.DAG, error) {
	dags := t.recording.Tables.DAGs
	if len(dags) == 0 {
		return nil, errors.New("no graph was read: --level operator and above read them, while the target computes")
	}
	most := optrace.GraphShape{DAG: uint32(len(dags))}
	for _, shape := range t.summary.Graphs {
		if shape.Graphs > most.Graphs && shape.DAG > 0 && int(shape.DAG) <= len(dags) {
			most = shape
		}
	}
	return &dags[most.DAG-1], nil
}

// showRecording gives the figures and files of a recording.
func showRecording(w *world, o *traceOptions, path string) error {
	r, err := readRecording(path)
	if err != nil {
		return err
	}
	o.recatalog(r)
	t := &traced{recording: r, summary: optrace.Analyze(r), newest: func() optrace.LiveGraph { return newestOf(r) }}
	if err := o.finish(w, t); err != nil {
		return err
	}
	if t.summary.Empty() {
		return exit(exitNothing) // the report says why
	}
	return nil
}

// newestOf is the newest graph of a token in a recording.
func newestOf(r *optrace.Recording) optrace.LiveGraph {
	tally := optrace.NewTally(r.Tables)
	a := optrace.NewAssembler(r.Tables, tally)
	for _, e := range r.Events {
		a.Push(e)
	}
	a.Flush(r.End)
	return tally.Live()
}

// maxRecording bounds a recording that is read, as it lies on the disk.
const maxRecording = 1 << 30

// readRecording reads the file of --save.
func readRecording(path string) (*optrace.Recording, error) {
	f, err := openTraced(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if other, known := foreignOf(f.head, path); known {
		return nil, usage("trace: %s %s; what 'rooftop trace' shows again is the recording that --save NAME%s keeps", path, other, recordingSuffix)
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, usage("trace: %s is no recording of 'rooftop trace --save': %w", path, unpackable(err))
	}
	lines := bufio.NewReaderSize(z, headOfFile)
	head, _ := lines.Peek(headOfFile)
	if other, known := foreignOf(head, path); known && !isRecording(head) {
		return nil, usage("trace: %s, unpacked, %s; what 'rooftop trace' shows again is the recording that --save NAME%s keeps", path, other, recordingSuffix)
	}
	r, err := unpacked(&cutting{from: lines})
	if err != nil {
		return nil, usage("trace: %s: %w", path, err)
	}
	return r, nil
}

// isRecording says that what is unpacked begins as a recording of a trace does.
func isRecording(head []byte) bool {
	schema := schemaOf.FindSubmatch(head)
	return schema != nil && string(schema[1]) == optrace.RecordingSchema
}

// unpackable says in words why a file does not begin as gzip's do.
func unpackable(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("it is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it ends before its first event")
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		return errors.New("it is no file that gzip made")
	}
	return err
}

// unpacked reads a recording as far as its file goes.
func unpacked(from *cutting) (*optrace.Recording, error) {
	rr, err := optrace.NewRecordingReader(from)
	if err != nil {
		return nil, err
	}
	r := rr.Recording()
	for {
		e, err := rr.Next()
		switch {
		case err == nil:
			r.Events = append(r.Events, e)
			continue
		case errors.Is(err, io.EOF):
			return r, nil
		}
		// A line is wrong. Where the file is cut further on, it was made of what lay there.
		if _, unread := io.Copy(io.Discard, from); unread != nil || !from.cut {
			return nil, err
		}
		rr.Cut()
		return r, nil
	}
}

// cutting has what cannot be unpacked be the end: a file that a killed program or a full
// disk left ends anywhere, or in bytes that are none of its own.
type cutting struct {
	from io.Reader
	cut  bool
}

func (c *cutting) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		c.cut, err = true, io.EOF
	}
	return n, err
}
