package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/apply"
	"github.com/rooftop-dev/rooftop/cmd/internal/report"
)

// maxReport bounds a stored report that is read: a day of windows has 3 MB.
const maxReport = 64 << 20

// storedRuns are all runs that anything is stored of, the latest first and numbered.
// What cannot be read is passed over and counted.
func storedRuns(env func(string) (string, bool)) (runs []report.PastRun, unread int, err error) {
	state, err := stateDir(env)
	if err != nil {
		return nil, 0, fail(exitError, errors.New("neither XDG_STATE_HOME nor HOME names a directory, so no run is stored"))
	}
	runs, told, unread, err := reportedRuns(filepath.Join(state, "rooftop", "runs"))
	if err != nil {
		return nil, 0, fail(exitError, err)
	}
	journalled, bad, err := journalledRuns(apply.Root(state))
	if err != nil {
		return nil, 0, fail(exitError, err)
	}
	for _, j := range journalled {
		i, reported := told[runOf(j.Path, j.Name)]
		switch {
		case !reported:
			runs = append(runs, j)
		case j.Outcome != report.PastEnded:
			// The report was written at an end that left the server as it was just then.
			runs[i].Outcome = j.Outcome
		}
	}
	slices.SortStableFunc(runs, func(a, b report.PastRun) int {
		return cmp.Or(b.Started.Compare(a.Started), strings.Compare(a.Name, b.Name))
	})
	for i := range runs {
		runs[i].Number = i + 1
	}
	return runs, unread + bad, nil
}

// unreadJournals are the journals of which lines cannot be read.
func unreadJournals(env func(string) (string, bool)) ([]*apply.UnreadError, error) {
	state, err := stateDir(env)
	if err != nil {
		return nil, fail(exitError, err)
	}
	list, err := apply.Unread(apply.Root(state))
	if err != nil {
		return nil, fail(exitError, err)
	}
	return list, nil
}

// journalBeside is the file beside a report that names the run of a journal which
// tells of the same.
const journalBeside = "journal"

// runOf names a run among those of all servers: by the directory of its server and
// its name in the journal there.
func runOf(dir, run string) string { return filepath.Base(dir) + "/" + run }

// reportedRuns reads the runs that have a report. Told are those among them that have
// a journal too, by their names.
func reportedRuns(dir string) (runs []report.PastRun, told map[string]int, unread int, err error) {
	told = map[string]int{}
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, 0, nil
	}
	if err != nil {
		return nil, nil, 0, err
	}
	for _, e := range list {
		if !e.IsDir() {
			continue
		}
		r, err := readStored(filepath.Join(dir, e.Name()))
		if err != nil {
			unread++
			continue
		}
		const longest = 1 << 10
		if name, err := readFile(filepath.Join(r.Path, journalBeside), longest); err == nil {
			told[strings.TrimSpace(string(name))] = len(runs)
		}
		runs = append(runs, r)
	}
	return runs, told, unread, nil
}

// reportBase is the name of the reports in the directory of a run, without what
// says their format.
const reportBase = "report"

// readStored reads the report of a run from its directory, or from the file itself.
func readStored(path string) (report.PastRun, error) {
	file := path
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		file = filepath.Join(path, reportBase+".json")
	}
	data, err := readFile(file, maxReport)
	if err != nil {
		return report.PastRun{}, err
	}
	r, err := report.ReadRun(data)
	if err != nil {
		return r, fmt.Errorf("%s: %w", file, err)
	}
	r.Path = filepath.Dir(file)
	r.Name = filepath.Base(r.Path)
	return r, nil
}

// journalledRuns reads the runs of all journals.
func journalledRuns(root string) (runs []report.PastRun, unread int, err error) {
	list, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	for _, e := range list {
		if !e.IsDir() {
			continue
		}
		found, err := apply.Runs(filepath.Join(root, e.Name()))
		if err != nil {
			unread++
			continue
		}
		for i := range found {
			runs = append(runs, pastOf(&found[i]))
		}
	}
	return runs, unread, nil
}

// findRun finds the one run that a person means: by its number in the history,
// "last", its name or the beginning of one, or a path.
func findRun(w *world, name string) (report.PastRun, error) {
	if strings.ContainsRune(name, filepath.Separator) || strings.HasSuffix(name, ".json") {
		r, err := readStored(name)
		if err != nil {
			return r, fail(exitError, fmt.Errorf("report: %w", err))
		}
		return r, nil
	}
	runs, _, err := storedRuns(w.env)
	if err != nil {
		return report.PastRun{}, err
	}
	if len(runs) == 0 {
		if lines, err := unreadJournals(w.env); err != nil || len(lines) > 0 {
			return report.PastRun{}, fail(exitError, errors.New("no run can be read; 'rooftop history' says why"))
		}
		return report.PastRun{}, fail(exitError, errors.New("no run is stored; 'rooftop tune' leaves one"))
	}
	if name == "last" {
		return runs[0], nil
	}
	if n, err := strconv.Atoi(name); err == nil && n >= 1 && n <= len(runs) {
		return runs[n-1], nil
	}
	var found []report.PastRun
	for _, r := range runs {
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
		return report.PastRun{}, usage("no run is called %q%s; 'rooftop history' lists them", name, nearestRun(name, runs))
	}
	return report.PastRun{}, usage("%q begins the names of %d runs: %s; add a letter or take its number from 'rooftop history'", name, len(found), someNames(found))
}

// someNames lists names, the first few where they are many.
func someNames(runs []report.PastRun) string {
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

// nearestRun suggests the name that is spelled most like what was typed.
func nearestRun(name string, runs []report.PastRun) string {
	best, least := "", len(name)/3+1
	for _, r := range runs {
		for _, part := range []string{r.Name, r.Name[:min(len(name), len(r.Name))]} {
			if n := catalog.Distance(name, part); n < least {
				best, least = r.Name, n
			}
		}
		if best == "" && len(name) >= 3 && strings.Contains(strings.ToLower(r.Name), strings.ToLower(name)) {
			best = r.Name
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// runNames are what a shell completes RUN with.
func runNames(w *world) []string {
	runs, _, err := storedRuns(w.env)
	if err != nil {
		return nil
	}
	names := []string{"last"}
	for i := range runs {
		names = append(names, runs[i].Name+"\t"+runs[i].Started.Local().Format("2006-01-02 15:04")+" "+runs[i].Model)
	}
	return names
}
