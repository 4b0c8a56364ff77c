// Command compare runs the corpus with two builds of rooftop and shows differences in their output:
//
//	go run ./cmd/internal/corpus/compare [flags] OLD NEW
//
// It exits with 1 if there are any.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rooftop-dev/rooftop/cmd/internal/corpus"
)

// options are the flags.
type options struct {
	only      string
	heavy     bool
	inputs    string
	oldInputs string
	rename    string
	keep      string
	jobs      int
	quiet     bool
	old, new  string
}

func main() {
	var o options
	flag.StringVar(&o.only, "run", "", "only cases whose names this regular expression matches")
	flag.BoolVar(&o.heavy, "all", false, "also the cases that take seconds, and every recording in every width")
	flag.StringVar(&o.inputs, "inputs", "testdata/recordings", "directory of the recordings")
	flag.StringVar(&o.oldInputs, "old-inputs", "", "directory of the recordings for OLD, where formats differ (default that of -inputs)")
	flag.StringVar(&o.rename, "rename", "", "file with a line OLD → NEW for each word, key or sentence that was renamed: not reported as a difference")
	flag.StringVar(&o.keep, "keep", "", "directory to keep what was printed in, as old/CASE.txt and new/CASE.txt")
	flag.IntVar(&o.jobs, "j", 2, "cases that run at once")
	flag.BoolVar(&o.quiet, "q", false, "only the names of cases that differ")
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	o.old, o.new = flag.Arg(0), flag.Arg(1)
	if o.oldInputs == "" {
		o.oldInputs = o.inputs
	}
	differ, err := compare(&o)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(2)
	case differ > 0:
		os.Exit(1)
	}
}

// compare runs all cases with both builds and returns the number of cases that differ.
func compare(o *options) (differ int, err error) {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return 0, err
	}
	renamed, err := renames(o.rename)
	if err != nil {
		return 0, err
	}
	cases := slices.DeleteFunc(corpus.Cases(), func(c corpus.Case) bool { return !only.MatchString(c.Name) || c.Heavy && !o.heavy })
	if o.keep != "" {
		for _, side := range []string{"old", "new"} {
			if err := os.RemoveAll(filepath.Join(o.keep, side)); err != nil {
				return 0, err
			}
		}
	}
	results := make([]result, len(cases))
	var group sync.WaitGroup
	turn := make(chan struct{}, max(1, o.jobs))
	for i := range cases {
		group.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			results[i] = both(&cases[i], o, renamed)
		})
	}
	group.Wait()
	var names []string
	for i, r := range results {
		switch name := cases[i].Name; {
		case errors.Is(r.err, errors.ErrUnsupported):
			fmt.Printf("%s: NOT COMPARED: it needs a pseudo-terminal\n", name)
		case r.err != nil:
			return 0, r.err
		case r.diff != "":
			names = append(names, name)
			if !o.quiet {
				fmt.Print(r.diff)
			}
		}
	}
	fmt.Printf("%d of %d cases differ", len(names), len(cases))
	if len(names) > 0 {
		fmt.Printf(": %s", strings.Join(names, " "))
	}
	fmt.Println()
	return len(names), nil
}

type result struct {
	diff string
	err  error
}

// both plays a case with both builds.
func both(c *corpus.Case, o *options, renamed *strings.Replacer) (r result) {
	before, err := play(c, o.old, o.oldInputs)
	if err != nil {
		return result{err: err}
	}
	after, err := play(c, o.new, o.inputs)
	if err != nil {
		return result{err: err}
	}
	before = renamed.Replace(before)
	dir := o.keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "corpus"); err != nil {
			return result{err: err}
		}
		defer os.RemoveAll(dir)
	}
	var files []string
	for _, side := range []struct{ name, text string }{{"old", before}, {"new", after}} {
		file := filepath.Join(side.name, filepath.FromSlash(c.Name)+".txt")
		files = append(files, file)
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return result{err: err}
		}
		if err := os.WriteFile(path, []byte(side.text), 0o644); err != nil {
			return result{err: err}
		}
	}
	if before == after {
		return result{}
	}
	diff := exec.CommandContext(context.Background(), "diff", "-u", "--label", files[0], "--label", files[1], files[0], files[1])
	diff.Dir = dir
	out, err := diff.Output()
	if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		return result{err: fmt.Errorf("diff: %w", err)}
	}
	return result{diff: string(out)}
}

// play runs a case with a build, in its own directory.
func play(c *corpus.Case, program, inputs string) (string, error) {
	program, err := filepath.Abs(program)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "corpus")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if err := c.Prepare(dir, inputs); err != nil {
		return "", err
	}
	var failed error
	out, err := c.Play(dir, func(cmd *corpus.Command) int {
		ctx, stop := context.WithTimeout(context.Background(), corpus.Patience)
		defer stop()
		child := exec.CommandContext(ctx, program, cmd.Args...)
		child.Env = slices.Concat(cmd.Env, []string{"PATH=" + os.Getenv("PATH")})
		child.Dir, child.Stdout, child.Stderr = cmd.Dir, cmd.Stdout, cmd.Stderr
		var exit *exec.ExitError
		switch err := child.Run(); {
		case ctx.Err() != nil:
			failed = fmt.Errorf("%s %s: it does not end", program, strings.Join(cmd.Args, " "))
		case errors.As(err, &exit):
			return exit.ExitCode()
		case err != nil:
			failed = err
		}
		return 0
	})
	return out, errors.Join(failed, err)
}

// renames reads the list of renamed texts. Longer texts come first, so that sentences are replaced
// before their words.
func renames(path string) (*strings.Replacer, error) {
	if path == "" {
		return strings.NewReplacer(), nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var pairs [][2]string
	for line := range bytes.Lines(text) {
		from, to, ok := strings.Cut(strings.TrimSpace(string(line)), " → ")
		if from = strings.Trim(strings.TrimPrefix(from, "- "), "` "); ok && from != "" {
			pairs = append(pairs, [2]string{from, strings.Trim(to, "` ")})
		}
	}
	slices.SortStableFunc(pairs, func(a, b [2]string) int { return len(b[0]) - len(a[0]) })
	var flat []string
	for _, p := range pairs {
		flat = append(flat, p[0], p[1])
	}
	return strings.NewReplacer(flat...), nil
}
