package pastruns

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/atomicfile"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

const (
	// reportBase is the name of reports in the directory of a run, without extension.
	reportBase = "report"
	// journalBeside is the file beside a report with the name of the run's journal.
	journalBeside = "journal"
)

// Names of formats.
const (
	Markdown = "markdown"
	JSON     = "json"
	HTML     = "html"
)

// reportFormat is a format of reports.
type reportFormat struct {
	name, ext string
	run       func(io.Writer, *loop.Snapshot) error  // writes a run that has ended
	past      func(io.Writer, *tuning.PastRun) error // writes a stored run
}

// formats are the report formats, in the order in which files are written.
var formats = []reportFormat{
	{
		Markdown, ".md",
		func(w io.Writer, s *loop.Snapshot) error { return render.Markdown(w, tuning.Report(s)) },
		func(w io.Writer, r *tuning.PastRun) error { return render.Markdown(w, tuning.PastReport(r)) },
	},
	{JSON, ".json", document.WriteRun, document.WritePastRun},
	{
		HTML, ".html",
		func(w io.Writer, s *loop.Snapshot) error { return render.HTML(w, tuning.Report(s)) },
		func(w io.Writer, r *tuning.PastRun) error { return render.HTML(w, tuning.PastReport(r)) },
	},
}

// FormatOf returns the format for a file name, "" if there is none.
func FormatOf(file string) string {
	for _, f := range formats {
		if strings.EqualFold(filepath.Ext(file), f.ext) {
			return f.name
		}
	}
	return ""
}

func reportsDir(state string) string { return filepath.Join(state, "rooftop", "runs") }

// Keep writes the full reports of a run into the user's state directory if anything was measured.
// journalled is the name of the run in a journal, "" without one; it is stored beside the reports.
// Keep returns the written files.
func Keep(env func(string) (string, bool), s *loop.Snapshot, journalled string) ([]string, error) {
	if s.Live == nil && s.Baseline == nil {
		return nil, nil
	}
	state, err := cli.StateDir(env)
	if err != nil {
		return nil, err
	}
	runs := reportsDir(state)
	if err := atomicfile.MakeOwnDir(runs); err != nil {
		return nil, err
	}
	name := s.Started.Local().Format(cli.StampLayout)
	if model := fileName(s.Target.Model); model != "" {
		name += "-" + model
	}
	dir, err := newDir(filepath.Join(runs, name))
	if err != nil {
		return nil, err
	}
	files, err := write(dir, reportBase, s)
	if journalled != "" {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, journalBeside), []byte(journalled+"\n"), 0o600))
	}
	return files, err
}

// newDir creates a directory that only its owner can access. If the name is taken, it appends a
// number.
func newDir(path string) (string, error) {
	for n := 1; ; n++ {
		name := cli.Numbered(path, n)
		err := os.Mkdir(name, 0o700)
		if !errors.Is(err, os.ErrExist) || n == cli.MaxTries {
			return name, err
		}
	}
}

// Export writes the reports of a run in progress into a directory; "" is the current one.
func Export(dir string, s *loop.Snapshot) ([]string, error) {
	return write(dir, "rooftop-"+time.Now().Format(cli.StampLayout), s)
}

// write writes a run in every format into a directory, under one name with a number appended if
// that is taken. It does not overwrite files.
func write(dir, base string, s *loop.Snapshot) (files []string, err error) {
	var first *os.File
	name := base
	for n := 1; first == nil; n++ {
		name = cli.Numbered(base, n)
		if first, err = create(dir, name+formats[0].ext); err != nil && (!errors.Is(err, os.ErrExist) || n == cli.MaxTries) {
			return nil, err
		}
	}
	for i, format := range formats {
		f := first
		if i > 0 {
			if f, err = create(dir, name+format.ext); err != nil {
				return files, err
			}
		}
		if err := errors.Join(format.run(f, s), f.Close()); err != nil {
			return files, err
		}
		files = append(files, filepath.Join(dir, name+format.ext))
	}
	return files, nil
}

func create(dir, name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// fileName returns a file name for a model that any file system accepts: the part after the last
// slash, with letters, digits, dots, dashes and underscores.
func fileName(model string) string {
	model = model[strings.LastIndexByte(model, '/')+1:]
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, model)
	name = strings.Trim(name, "._")
	return name[:min(len(name), 60)]
}
