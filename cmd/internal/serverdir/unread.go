package serverdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/engine/journal"
)

// UnreadError means that lines of a journal cannot be read, or that the journal is empty
// although exact launches of a run exist. It is then unknown what should run, so nothing
// is changed or removed.
type UnreadError struct {
	Path  string // path of the journal
	Lines []int  // line numbers from 1; none if the journal has no records
	Newer bool   // a newer rooftop wrote one of the lines
}

// What describes what cannot be read.
func (e *UnreadError) What() string {
	switch {
	case len(e.Lines) == 0:
		return e.Path + " holds no records, although launches of a run are beside it"
	case e.Newer:
		return fmt.Sprintf("%s of %s, written by a newer rooftop", linesOf(e.Lines), e.Path)
	}
	return fmt.Sprintf("%s of %s, which is damaged", linesOf(e.Lines), e.Path)
}

func (e *UnreadError) Error() string {
	what, use := "the launch to run is unknown: "+e.What(), ""
	if len(e.Lines) > 0 {
		what = "the launch to run is unknown without " + e.What()
	}
	if e.Newer {
		use = "use the newer one, or "
	}
	return fmt.Sprintf("%s; %srestore the server yourself from the %s*.json beside it, then run 'rooftop recover --leave'", what, use, launchPrefix)
}

// linesOf formats line numbers for a sentence: "lines 3 to 5, 9".
func linesOf(lines []int) string {
	const maxRanges = 5
	var words []string
	for i := 0; i < len(lines); i++ {
		from := lines[i]
		for i+1 < len(lines) && lines[i+1] == lines[i]+1 {
			i++
		}
		words = append(words, fmt.Sprint(from))
		if lines[i] > from {
			words[len(words)-1] += fmt.Sprintf(" to %d", lines[i])
		}
	}
	if len(words) > maxRanges {
		words = append(words[:maxRanges], "…")
	}
	if len(lines) == 1 {
		return "line " + words[0]
	}
	return "lines " + strings.Join(words, ", ")
}

// unbegunName is a file that marks a run without records, because a launch is stored before
// the record that names it.
const unbegunName = "unbegun" + temporarySuffix

// doubt returns why a journal does not show what should run; nil if it does.
func doubt(dir string, f *journal.File) *UnreadError {
	e := &UnreadError{Path: filepath.Join(dir, journalName), Lines: f.UnreadableTail()}
	e.Newer = slices.ContainsFunc(e.Lines, func(line int) bool { return slices.Contains(f.Newer, line) })
	if len(e.Lines) > 0 {
		return e
	}
	if len(f.Records) > 0 || len(Launches(dir)) == 0 {
		return nil
	}
	if _, err := os.Lstat(filepath.Join(dir, unbegunName)); err == nil {
		return nil
	}
	return e
}

// Launches returns the file names of the exact launches in the directory of a server.
func Launches(dir string) []string {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range list {
		if IsLaunch(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// ReadState reads the state in the journal of a server without changing it. The
// *UnreadError is not nil if the journal does not show what should run.
func ReadState(dir string) (journal.State, *UnreadError, error) {
	f, err := readFile(dir, journalName)
	if err != nil {
		return journal.State{}, nil, err
	}
	return journal.Reduce(f.Records), doubt(dir, &f), nil
}

// Knows reports whether the journal in a directory names a process, or cannot be read.
func Knows(dir string, p journal.Process) bool {
	for _, name := range []string{journalName, earlierName} {
		f, err := readFile(dir, name)
		if err != nil || len(f.Damaged)+len(f.Newer) > 0 || slices.ContainsFunc(f.Records, func(r journal.Record) bool { return r.Process != nil && *r.Process == p }) {
			return true
		}
	}
	return false
}

// read reads a file of the directory. Only a regular one ends, so it refuses any other.
func read(path string) ([]byte, error) {
	file, err := launcher.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}

// readFile reads one file of a journal; a missing file counts as empty.
func readFile(dir, name string) (journal.File, error) {
	data, err := read(filepath.Join(dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return journal.File{}, err
	}
	return journal.Decode(data), nil
}

// Unread lists the unreadable parts of all journals below root, also of finished runs. It
// touches nothing.
func Unread(root string) ([]*UnreadError, error) {
	dirs, err := Dirs(root)
	if err != nil {
		return nil, err
	}
	var list []*UnreadError
	for _, dir := range dirs {
		for _, name := range []string{earlierName, journalName} {
			f, err := readFile(dir, name)
			if err != nil {
				continue // the caller counts its runs as unread
			}
			lines := slices.Concat(f.Damaged, f.Newer)
			slices.Sort(lines)
			if len(lines) > 0 {
				list = append(list, &UnreadError{Path: filepath.Join(dir, name), Lines: lines, Newer: len(f.Newer) > 0})
			} else if d := doubt(dir, &f); d != nil && name == journalName {
				list = append(list, d)
			}
		}
	}
	return list, nil
}

// Overlook prepares a directory with an unreadable journal for the record that ends its open
// run. [Store.Doubt] stays until that record is written.
func (s *Store) Overlook() error {
	if s.doubt == nil {
		return nil
	}
	f, err := readFile(s.dir, journalName)
	if err != nil {
		return err
	}
	if err := s.mend(&f); err != nil {
		return err
	}
	s.size = int64(f.WholeBytes)
	if !s.state.Open {
		s.run = s.newRun()
	}
	return nil
}
