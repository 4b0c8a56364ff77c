package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/session"
)

// recordFile is the file of a recording that is being made; nil is none.
type recordFile struct {
	*os.File
	r *session.Recorder
}

// createRecord creates the file of a recording, readable by its owner alone: a
// page may name what a company does not publish. It never overwrites. Without a
// path there is no file.
func createRecord(path string) (*recordFile, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, usage("--record: %s exists already; choose another name or remove it", path)
	}
	if err != nil {
		return nil, usage("--record: %w", err)
	}
	return &recordFile{f, session.NewRecorder(f)}, nil
}

// recorder is what a run writes to, nil for no file.
func (f *recordFile) recorder() *session.Recorder {
	if f == nil {
		return nil
	}
	return f.r
}

// close ends the recording and returns the first error of all writes.
func (f *recordFile) close() error {
	if f == nil {
		return nil
	}
	return errors.Join(f.r.Close(), f.File.Close())
}

// discard removes a file that nothing was recorded in.
func (f *recordFile) discard() {
	if f != nil {
		_ = f.File.Close()
		_ = os.Remove(f.Name())
	}
}

func newReplay(w *world) *cobra.Command {
	var out output
	var ceiling string
	c := &cobra.Command{
		Use:   "replay FILE",
		Short: "Diagnose a recording again",
		Long: `Reads what 'rooftop diagnose --record FILE' wrote and gives the same report at
once: for a second look with -v or --json, for a colleague, or for a newer
rooftop. A recording holds raw metrics pages and readings, and no key or token.
The exit codes are those of diagnose.`,
		Example: "  rooftop replay run.gz -v\n  rooftop replay run.gz --json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("replay needs one FILE; 'rooftop diagnose --record FILE' makes one")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := fromEnvironment(c.Flags(), w.env); err != nil {
				return err
			}
			if err := out.check(); err != nil {
				return err
			}
			if ceiling != "" {
				if err := checkCeiling(ceiling); err != nil {
					return err
				}
			}
			return replay(w, args[0], &out, ceiling)
		},
	}
	g := groupFlags(c)
	g.group("The report").StringVar(&ceiling, "ceiling", "", "`WHICH` ceiling to show: physical or classic (default: the recorded run's)")
	out.register(g, everything)
	g.done()
	return c
}

// replay prints the diagnosis of a recording. Without a ceiling the page is that
// of the recorded run.
func replay(w *world, path string, out *output, ceiling string) error {
	f, err := os.Open(path)
	if err != nil {
		return usage("replay: %w", err)
	}
	defer func() { _ = f.Close() }()
	recording, err := session.OpenRecording(f)
	if err != nil {
		return fail(exitError, fmt.Errorf("replay %s: %w", path, err))
	}
	d, err := session.Replay(recording, buildVersion())
	if err != nil {
		return fail(exitError, fmt.Errorf("replay %s: %w", path, err))
	}
	if err := write(w, out, &d, cmp.Or(ceiling, recording.Header.Ceiling)); err != nil {
		return fail(exitError, err)
	}
	return exit(outcomeCode(&d))
}
