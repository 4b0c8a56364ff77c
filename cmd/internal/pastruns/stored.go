// Package pastruns finds the stored data of past runs: the reports that a run writes at its end,
// and the journals of runs that changed a server.
package pastruns

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/atomicfile"
	"github.com/rooftop-dev/rooftop/cmd/internal/autopilot"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

// maxReport limits the size of a stored report: a day of windows has 3 MB.
const maxReport = 64 << 20

// Stored has all stored runs.
type Stored struct {
	Runs   []tuning.PastRun // latest first, numbered from 1
	Unread int              // runs that could not be read
	state  string
	known  map[string]int // indices of runs with both a report and a journal, by the name in the journal
}

// Load reads all stored runs, and counts those that cannot be read.
func Load(env func(string) (string, bool)) (*Stored, error) {
	state, err := cli.StateDir(env)
	if err != nil {
		return nil, errors.New("neither XDG_STATE_HOME nor HOME names a directory, so no run is stored")
	}
	s := &Stored{state: state, known: map[string]int{}}
	if err := s.each(reportsDir(state), s.addReport); err != nil {
		return nil, err
	}
	if err := s.each(serverdir.Root(state), s.addJournal); err != nil {
		return nil, err
	}
	slices.SortStableFunc(s.Runs, func(a, b tuning.PastRun) int {
		return cmp.Or(b.Started.Compare(a.Started), strings.Compare(a.Name, b.Name))
	})
	for i := range s.Runs {
		s.Runs[i].Number = i + 1
	}
	return s, nil
}

// each adds every directory below root, and counts those that fail.
func (s *Stored) each(root string, add func(dir string) error) error {
	list, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = atomicfile.OwnDir(root)
	}
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.IsDir() && add(filepath.Join(root, e.Name())) != nil {
			s.Unread++
		}
	}
	return nil
}

// addReport adds the run of a directory of reports.
func (s *Stored) addReport(dir string) error {
	r, err := read(dir)
	if err != nil {
		return err
	}
	const longest = 1 << 10
	if name, err := cli.ReadFile(filepath.Join(r.Path, journalBeside), longest); err == nil {
		s.known[strings.TrimSpace(string(name))] = len(s.Runs)
	}
	s.Runs = append(s.Runs, r)
	return nil
}

// addJournal adds the runs of a server's journal, except those with a report.
func (s *Stored) addJournal(dir string) error {
	found, err := serverdir.Runs(dir)
	if err != nil {
		return err
	}
	for i := range found {
		j := fromJournal(&found[i])
		reported, ok := s.known[autopilot.RunName(j.Path, j.Name)]
		switch {
		case !ok:
			s.Runs = append(s.Runs, j)
		case j.Outcome != tuning.PastEnded:
			// The report was written before the server's final state was known.
			s.Runs[reported].Outcome = j.Outcome
		}
	}
	return nil
}

// UnreadJournals returns the journals with unreadable lines.
func (s *Stored) UnreadJournals() ([]*serverdir.UnreadError, error) {
	return serverdir.Unread(serverdir.Root(s.state))
}

// read reads the report of a run from its directory, or from the file itself.
func read(path string) (tuning.PastRun, error) {
	file := path
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		file = filepath.Join(path, reportBase+".json")
	}
	data, err := cli.ReadFile(file, maxReport)
	if err != nil {
		return tuning.PastRun{}, err
	}
	r, err := document.ReadRun(data)
	if err != nil {
		return r, fmt.Errorf("%s: %w", file, err)
	}
	r.Path = filepath.Dir(file)
	r.Name = filepath.Base(r.Path)
	return r, nil
}

// Find returns a run by its number in the history, "last", its name or a unique prefix of it, or a
// path.
func Find(env func(string) (string, bool), name string) (tuning.PastRun, error) {
	if strings.ContainsRune(name, filepath.Separator) || strings.HasSuffix(name, ".json") {
		r, err := read(name)
		if err != nil {
			return r, fmt.Errorf("report: %w", err)
		}
		return r, nil
	}
	s, err := Load(env)
	if err != nil {
		return tuning.PastRun{}, err
	}
	if len(s.Runs) == 0 {
		if lines, err := s.UnreadJournals(); err != nil || len(lines) > 0 {
			return tuning.PastRun{}, errors.New("no run can be read; see 'rooftop history'")
		}
		return tuning.PastRun{}, errors.New("no run is stored; 'rooftop tune' stores one")
	}
	if name == "last" {
		return s.Runs[0], nil
	}
	if n, err := strconv.Atoi(name); err == nil && n >= 1 && n <= len(s.Runs) {
		return s.Runs[n-1], nil
	}
	return s.named(name)
}

// named returns the run with a name, or with a unique prefix of it.
func (s *Stored) named(name string) (tuning.PastRun, error) {
	var found []tuning.PastRun
	var names []string
	for _, r := range s.Runs {
		names = append(names, r.Name)
		if r.Name == name {
			return r, nil
		}
		if strings.HasPrefix(r.Name, name) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return tuning.PastRun{}, cli.Usagef("no run is called %q%s; 'rooftop history' lists them", name, cli.Suggestion(name, names...))
	}
	return tuning.PastRun{}, cli.Usagef("%q is a prefix of the names of %d runs: %s; add a letter or use the number in 'rooftop history'", name, len(found), someNames(found))
}

// someNames lists names, but only the first few if there are many.
func someNames(runs []tuning.PastRun) string {
	const most = 4
	var names []string
	for _, r := range runs[:min(most, len(runs))] {
		names = append(names, r.Name)
	}
	if len(runs) > most {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

// Names returns the shell completions for the name of a run.
func Names(env func(string) (string, bool)) []string {
	s, err := Load(env)
	if err != nil {
		return nil
	}
	names := []string{"last"}
	for i := range s.Runs {
		r := &s.Runs[i]
		names = append(names, r.Name+"\t"+r.Started.Local().Format("2006-01-02 15:04")+" "+r.Model)
	}
	return names
}

// Report returns the report of a run as written when the run ended or, without one, built from the
// stored data.
func Report(r *tuning.PastRun, format string) ([]byte, error) {
	f := formats[slices.IndexFunc(formats, func(f reportFormat) bool { return f.name == format })]
	if !r.Journal {
		text, err := cli.ReadFile(filepath.Join(r.Path, reportBase+f.ext), maxReport)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return text, err
		}
	}
	var b bytes.Buffer
	err := f.past(&b, r)
	return b.Bytes(), err
}
