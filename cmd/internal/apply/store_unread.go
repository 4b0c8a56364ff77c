package apply

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/journal"
)

// UnreadError says that lines of a journal cannot be read, or that none are there
// although the exact launches of a run are. Where it is an error, what is to run is
// not known: nothing there is changed or removed.
type UnreadError struct {
	Path  string // of the journal
	Lines []int  // from 1; none where the journal holds no record
	Newer bool   // a later rooftop wrote one of them
}

// What says what cannot be read.
func (e *UnreadError) What() string {
	switch {
	case len(e.Lines) == 0:
		return e.Path + " holds no record, although launches of a run lie beside it"
	case e.Newer:
		return fmt.Sprintf("%s of %s: a newer rooftop wrote that", linesOf(e.Lines), e.Path)
	}
	return fmt.Sprintf("%s of %s: that is damaged", linesOf(e.Lines), e.Path)
}

func (e *UnreadError) Error() string {
	what, use := "what is to run cannot be told: "+e.What(), ""
	if len(e.Lines) > 0 {
		what = "what is to run cannot be told without " + e.What()
	}
	if e.Newer {
		use = "use that one, or "
	}
	return fmt.Sprintf("%s; %sput the server right yourself, by the %s*.json beside it, and say 'rooftop recover --leave'", what, use, launchPrefix)
}

// linesOf names lines, those that follow each other as one range.
func linesOf(lines []int) string {
	const most = 5 // ranges
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
	if len(words) > most {
		words = append(words[:most], "…")
	}
	if len(lines) == 1 {
		return "line " + words[0]
	}
	return "lines " + strings.Join(words, ", ")
}

// unbegunName is a file that lies in the directory of a server while a run has it and
// did not begin: a launch is kept before the record that names it is written.
const unbegunName = "unbegun" + temporarySuffix

// doubt is why what a journal holds does not tell what is to run; nil where it does.
func doubt(dir string, f *journal.File) *UnreadError {
	e := &UnreadError{Path: filepath.Join(dir, journalName), Lines: f.Unsure()}
	e.Newer = slices.ContainsFunc(e.Lines, func(line int) bool { return slices.Contains(f.Newer, line) })
	if len(e.Lines) > 0 {
		return e
	}
	if len(f.Records) > 0 || len(launches(dir)) == 0 {
		return nil
	}
	if _, err := os.Lstat(filepath.Join(dir, unbegunName)); err == nil {
		return nil
	}
	return e
}

// launches are the names of the exact launches in the directory of a server.
func launches(dir string) []string {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range list {
		if isLaunch(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// readJournal reads the journal of a server, and whether it tells what is to run,
// without changing it.
func readJournal(dir string) (journal.State, *UnreadError, error) {
	f, err := readFile(dir, journalName)
	if err != nil {
		return journal.State{}, nil, err
	}
	return journal.Reduce(f.Records), doubt(dir, &f), nil
}

// readFile reads one file of a journal; none is an empty one.
func readFile(dir, name string) (journal.File, error) {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return journal.File{}, err
	}
	return journal.Decode(data), nil
}

// Unread lists what cannot be read of the journals below root, also of runs that are
// over. It touches nothing.
func Unread(root string) ([]*UnreadError, error) {
	dirs, err := serverDirs(root)
	if err != nil {
		return nil, err
	}
	var list []*UnreadError
	for _, dir := range dirs {
		for _, name := range []string{earlierName, journalName} {
			f, err := readFile(dir, name)
			if err != nil {
				continue // its runs are counted as unread
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

// unread says of a server whose journal does not tell what is to run what there is.
func (l Left) unread(why *UnreadError) Left {
	l.Unread = true
	if l.State.Open {
		l.found("the run of %s did not end", l.State.Begun.Local().Format("2006-01-02 15:04:05"))
	}
	for _, name := range launches(l.Dir) {
		if launch, err := readLaunch(l.Dir, name); err == nil && launch.Command() != "" {
			l.found("%s starts %s", name, launch.Command())
		}
	}
	return l.not(Impossible, why.Error())
}

// overlook makes ready a directory whose journal cannot be read for a record that ends
// what is open there. Until that is written the doubt stays.
func (s *Store) overlook() error {
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
	s.size = int64(f.Whole)
	if !s.state.Open {
		s.run = s.newRun()
	}
	return nil
}
