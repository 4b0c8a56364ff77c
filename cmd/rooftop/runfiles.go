package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/report"
	"github.com/rooftop-dev/rooftop/engine"
)

// fileOptions say what files a run leaves.
type fileOptions struct {
	dir  string // of exported reports, "" is the current directory
	none bool   // no full report at the end
}

func (o *fileOptions) register(g *flagGroups) {
	f := g.group("Files")
	f.StringVar(&o.dir, "report-dir", "", "`DIR` for the reports that e writes on the screen (default the current one)")
	f.BoolVar(&o.none, "no-report", false, "write no full report at the end; else it lies under ~/.local/state/rooftop/runs")
}

func (o *fileOptions) check() error {
	if o.dir == "" {
		return nil
	}
	info, err := os.Stat(o.dir)
	if err != nil {
		return usage("--report-dir: %w", err)
	}
	if !info.IsDir() {
		return usage("--report-dir: %s is no directory", o.dir)
	}
	return nil
}

// stampLayout is how a time stands in the name of a file.
const stampLayout = "20060102-150405"

// export writes the reports of a run that goes on into the directory of
// --report-dir.
func (o *fileOptions) export(s *engine.Snapshot) ([]string, error) {
	return writeReports(o.dir, "rooftop-"+time.Now().Format(stampLayout), s)
}

// keepRun writes the full reports of a run into the user's state directory, where
// anything was measured, with the name of the journal's run beside them: "" where
// nothing was journalled.
func keepRun(env func(string) (string, bool), s *engine.Snapshot, journalled string) ([]string, error) {
	if s.Live == nil && s.Baseline == nil {
		return nil, nil
	}
	state, err := stateDir(env)
	if err != nil {
		return nil, err
	}
	runs := filepath.Join(state, "rooftop", "runs")
	if err := os.MkdirAll(runs, 0o700); err != nil {
		return nil, err
	}
	name := s.Started.Local().Format(stampLayout)
	if model := fileName(s.Target.Model); model != "" {
		name += "-" + model
	}
	dir, err := newDir(filepath.Join(runs, name))
	if err != nil {
		return nil, err
	}
	files, err := writeReports(dir, reportBase, s)
	if journalled != "" {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, journalBeside), []byte(journalled+"\n"), 0o600))
	}
	return files, err
}

// stateDir is where programs of this user keep what outlives them.
func stateDir(env func(string) (string, bool)) (string, error) {
	// Relative paths do not count (XDG base directories).
	if dir, ok := env("XDG_STATE_HOME"); ok && filepath.IsAbs(dir) {
		return dir, nil
	}
	if home, ok := env("HOME"); ok && filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state"), nil
	}
	return "", errors.New("neither XDG_STATE_HOME nor HOME names a directory; --no-report writes none")
}

// maxTries bounds how many names are tried for a new file.
const maxTries = 100

// newDir makes a directory for its owner alone, with a number behind its name
// where that is taken.
func newDir(path string) (string, error) {
	for n := 1; ; n++ {
		name := numbered(path, n)
		err := os.Mkdir(name, 0o700)
		if !errors.Is(err, os.ErrExist) || n == maxTries {
			return name, err
		}
	}
}

func numbered(name string, n int) string {
	if n == 1 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, n)
}

// reportFormats are the files of a report, by their extension.
var reportFormats = []struct {
	ext   string
	write func(io.Writer, *engine.Snapshot) error
}{
	{".md", report.WriteRunMarkdown},
	{".json", report.WriteRunJSON},
	{".html", report.WriteRunHTML},
}

// writeReports writes a run in every format into a directory, under one name with
// a number behind it where that is taken. Files that exist are left alone.
func writeReports(dir, base string, s *engine.Snapshot) ([]string, error) {
	var files []string
	name := ""
	for n := 1; name == ""; n++ {
		f, err := os.OpenFile(filepath.Join(dir, numbered(base, n)+reportFormats[0].ext), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		switch {
		case errors.Is(err, os.ErrExist) && n < maxTries:
			continue
		case err != nil:
			return nil, err
		}
		_ = f.Close()
		name = numbered(base, n)
	}
	for i, format := range reportFormats {
		mode := os.O_WRONLY | os.O_CREATE | os.O_EXCL
		if i == 0 {
			mode = os.O_WRONLY
		}
		path := filepath.Join(dir, name+format.ext)
		if err := writeReport(path, mode, s, format.write); err != nil {
			return files, err
		}
		files = append(files, path)
	}
	return files, nil
}

func writeReport(path string, mode int, s *engine.Snapshot, write func(io.Writer, *engine.Snapshot) error) error {
	f, err := os.OpenFile(path, mode, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(write(f, s), f.Close())
}

// fileName makes a name of a model that any file system takes: the part behind
// the last slash, in letters, digits, dots, dashes and underscores.
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
