package tracing

import (
	"compress/gzip"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/atomicfile"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/tally"
	tracepage "github.com/rooftop-dev/rooftop/engine/page/trace"
)

// finish writes all requested outputs of a trace. A failing output does not prevent the others.
func (o *Options) finish(w *cli.World, t *traced) error {
	var failed, saved []string
	note := func(path string, err error) {
		if err != nil {
			failed = append(failed, err.Error())
		} else {
			saved = append(saved, path)
		}
	}
	switch {
	case t.saving == nil:
	case t.summary.Empty() && hasContent(o.save):
		t.keepExisting(w, o.save)
	default:
		note(o.save, t.saving.close(t.recording))
	}
	for i, fill := range []func(io.Writer) error{t.chrome, t.dot, t.html} {
		if path := o.outputs()[1+i].path; path != "" {
			note(path, o.owner().Write(path, atomicfile.Mode(path, 0o600), fill))
		}
	}
	err := t.print(w, o)
	w.ReportSaved(saved)
	switch {
	case len(failed) > 0:
		if err != nil {
			failed = append(failed, err.Error())
		}
		return errors.New(strings.Join(failed, "; and "))
	case err != nil:
		return err
	}
	return nil
}

// hasContent reports whether a path names a file that is not empty.
func hasContent(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() > 0
}

// keepExisting keeps an existing recording that an empty one would replace.
func (t *traced) keepExisting(w *cli.World, path string) {
	t.saving.discard()
	g := optrace.Gap{What: "the recording", Why: path + " is left as it was: this trace is empty", Next: "name another file to keep it anyway"}
	t.summary.Gaps = append(t.summary.Gaps, g)
	w.Notef("%s", g.Why)
}

// print writes the report or the document.
func (t *traced) print(w *cli.World, o *Options) error {
	return cli.Print(w, &o.Output, t.document(), func(to io.Writer, d *tracepage.Trace, style render.Options) error {
		return render.Text(to, tracepage.Report(d.Summary, style.Verbose), style)
	}, document.WriteTrace)
}

func (t *traced) document() *tracepage.Trace {
	return &tracepage.Trace{Version: cli.Version(), Started: t.recording.Origin, Summary: t.summary}
}

func (t *traced) chrome(w io.Writer) error {
	return WriteOperators(w, t.recording)
}

func (t *traced) dot(w io.Writer) error {
	d, err := t.dag()
	if err != nil {
		return err
	}
	return WriteDOT(w, t.recording.Tables, d, t.summary)
}

func (t *traced) html(w io.Writer) error {
	page := &tracepage.Source{Trace: *t.document()}
	if graph := tally.MedianGraph(t.recording); graph.MedianOf > 0 {
		page.Graph = &graph
	}
	return render.HTML(w, tracepage.Document(page))
}

// dag returns the graph that was computed most often.
func (t *traced) dag() (*optrace.DAG, error) {
	dags := t.recording.Tables.DAGs
	if len(dags) == 0 {
		return nil, errors.New("no graph was read: trace with --level operator or higher while the target computes")
	}
	most := optrace.GraphShape{DAG: uint32(len(dags))}
	for _, shape := range t.summary.Graphs {
		if shape.Graphs > most.Graphs && shape.DAG > 0 && int(shape.DAG) <= len(dags) {
			most = shape
		}
	}
	return &dags[most.DAG-1], nil
}

// showRecording prints the figures and writes the files of a recording.
func (o *Options) showRecording(w *cli.World) error {
	r, err := readRecording(o.name)
	if err != nil {
		return err
	}
	o.applyCatalog(r)
	t := &traced{recording: r, summary: tally.Analyze(r)}
	if t.saving, err = newSaving(o.save, o.owner()); err != nil {
		return err
	}
	if t.saving != nil {
		t.saving.left = r.LeftOut
		t.saving.addEvents(r, r.Events)
	}
	if err := o.finish(w, t); err != nil {
		return err
	}
	if t.summary.Empty() {
		return cli.Exit(cli.ExitNothing) // the report has the reason
	}
	return nil
}

// maxRecording limits the compressed size of a recording.
const maxRecording = 1 << 30

// readRecording reads the file of --save.
func readRecording(path string) (*optrace.Recording, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, cli.Usagef("trace: %s is not a recording of 'rooftop trace --save': %w", path, gzipError(err))
	}
	r, err := readEvents(&lenientReader{from: z})
	if err != nil {
		return nil, cli.Usagef("trace: %s: %w", path, err)
	}
	return r, nil
}

// gzipError describes why a file does not begin like a gzip file.
func gzipError(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("it is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it is truncated before its first event")
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		return errors.New("it is not a gzip file")
	}
	return err
}

// readEvents reads a recording as far as its file goes.
func readEvents(from *lenientReader) (*optrace.Recording, error) {
	rr, err := optrace.NewReader(from)
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
		// A line is invalid. If the file is cut further on, the invalid data came from the disk.
		if _, unread := io.Copy(io.Discard, from); unread != nil || !from.cut {
			return nil, err
		}
		rr.Cut()
		return r, nil
	}
}

// lenientReader treats data that cannot be decompressed as the end: the file of a killed program or
// on a full disk may end anywhere, or in unrelated bytes.
type lenientReader struct {
	from io.Reader
	cut  bool
}

func (c *lenientReader) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		c.cut, err = true, io.EOF
	}
	return n, err
}
