package main

import (
	"cmp"
	"context"
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

// replayOptions are the flags of a replay.
type replayOptions struct {
	output
	ceiling string
	tui     bool
	speed   float64
	screen  screenOptions
	files   fileOptions
	given   func(flag string) bool // on the command line; a variable may be meant for another command
}

func newReplay(w *world) *cobra.Command {
	var o replayOptions
	c := &cobra.Command{
		Use:   "replay FILE",
		Short: "Diagnose a recording again, or play it on the screen",
		Long: `Reads what --record FILE of diagnose or tune wrote and gives the same report at
once: for a second look with -v or --json, for a colleague, or for a newer
rooftop. A recording holds raw metrics pages and readings, and no key or token.
The exit codes are those of diagnose.

With --tui the recording is played on the live screen, at its own pace or up to
60 times as fast. There it can be paused, and moved forward and back; ? shows
the keys. Nothing can be changed in a recording.`,
		Example: "  rooftop replay run.gz -v\n  rooftop replay run.gz --json\n  rooftop replay run.gz --tui --speed 10",
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
			o.given = func(name string) bool {
				f := c.Flags().Lookup(name)
				return f.Changed && f.Annotations[fromVariable] == nil
			}
			if err := o.check(w); err != nil {
				return err
			}
			if o.tui {
				return play(c.Context(), w, args[0], &o)
			}
			return replay(w, args[0], &o.output, o.ceiling)
		},
	}
	g := groupFlags(c)
	f := g.group("The report")
	f.StringVar(&o.ceiling, "ceiling", "", "`WHICH` ceiling to show: physical or classic (default: the recorded run's)")
	f = g.group("The screen")
	f.BoolVar(&o.tui, "tui", false, "play the recording on the live screen")
	f.Float64Var(&o.speed, "speed", 1, "`N` seconds of the recording in one, 1 to 60")
	o.screen.register(f)
	f.StringVar(&o.files.dir, "report-dir", "", "`DIR` for the reports that e writes on the screen (default the current one)")
	o.output.register(g, everything)
	g.done()
	return c
}

// maxSpeed is how fast a recording is played at most.
const maxSpeed = 60

func (o *replayOptions) check(w *world) error {
	if err := o.output.check(); err != nil {
		return err
	}
	if o.ceiling != "" {
		if err := checkCeiling(o.ceiling); err != nil {
			return err
		}
	}
	if !o.tui {
		for _, name := range []string{"speed", "theme", "refresh", "report-dir"} {
			if o.given(name) {
				return usage("replay: --%s is for the screen; add --tui", name)
			}
		}
		return nil
	}
	switch {
	case o.json || o.plain:
		return usage("replay: --tui is the screen; leave out --json and --plain, or --tui")
	case !(o.speed >= 1 && o.speed <= maxSpeed):
		return usage("replay: --speed %v: give 1 to %d", o.speed, maxSpeed)
	case viewOf(w, &o.output) != viewScreen:
		return usage("replay: --tui needs a terminal for stdin and stdout; without it the report is printed")
	}
	if err := o.screen.check(); err != nil {
		return err
	}
	return o.files.check()
}

// openRecording opens a recording, which is read from its file as it is needed:
// done closes that.
func openRecording(path string) (recording *session.Recording, done func(), err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, usage("replay: %w", err)
	}
	done = func() { _ = f.Close() }
	if recording, err = session.OpenRecording(f); err != nil {
		done()
		return nil, nil, fail(exitError, fmt.Errorf("replay %s: %w", path, err))
	}
	return recording, done, nil
}

// play shows a recording on the screen.
func play(ctx context.Context, w *world, path string, o *replayOptions) error {
	recording, done, err := openRecording(path)
	if err != nil {
		return err
	}
	defer done()
	player, err := session.NewPlayer(recording, buildVersion())
	if err != nil {
		return fail(exitError, fmt.Errorf("replay %s: %w", path, err))
	}
	player.Speed(o.speed)
	player.Exports(o.files.export)
	v := &screenView{w: w, out: &o.output, options: &o.screen, playback: player}
	return (&following{session: player, view: v, stderr: w.stderr}).run(ctx)
}

// replay prints the diagnosis of a recording. Without a ceiling the page is that
// of the recorded run.
func replay(w *world, path string, out *output, ceiling string) error {
	recording, done, err := openRecording(path)
	if err != nil {
		return err
	}
	defer done()
	d, err := session.Replay(recording, buildVersion())
	if err != nil {
		return fail(exitError, fmt.Errorf("replay %s: %w", path, err))
	}
	if err := write(w, out, &d, cmp.Or(ceiling, recording.Header.Ceiling)); err != nil {
		return fail(exitError, err)
	}
	return exit(outcomeCode(&d))
}
