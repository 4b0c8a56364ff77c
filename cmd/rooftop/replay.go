package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
)

// recordFile is the file of a recording in progress; nil is none.
type recordFile struct {
	*os.File
	r *session.Recorder
}

// createRecord creates the file of a recording, readable only by its owner, because a page may
// contain unpublished names. It never overwrites a file. Without a path it returns nil.
func createRecord(path string) (*recordFile, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch info, _ := os.Stat(path); {
	case info != nil && info.IsDir():
		return nil, cli.Usagef("--record: %s is a directory; give the name of a new file, such as %s", path, filepath.Join(path, "run.gz"))
	case errors.Is(err, os.ErrExist):
		return nil, cli.Usagef("--record: %s exists already; choose another name or remove it", path)
	case errors.Is(err, os.ErrNotExist):
		return nil, cli.Usagef("--record: there is no directory %s for %s; create it, or choose another one", filepath.Dir(path), filepath.Base(path))
	case err != nil:
		return nil, cli.Usagef("--record: %w", err)
	}
	return &recordFile{f, session.NewRecorder(f)}, nil
}

// recorder returns the writer of the recording, nil without a file.
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

// discard removes a file without any recorded data.
func (f *recordFile) discard() {
	if f != nil {
		_ = f.File.Close()
		_ = os.Remove(f.Name())
	}
}

// replayOptions are the flags of a replay.
type replayOptions struct {
	attach.Options
	tui    bool
	speed  float64
	screen screenOptions
	files  fileOptions
}

// given reports whether a flag is on the command line; a variable may be meant for another command.
func (o *replayOptions) given(name string) bool { return cli.OnCommandLine(o.Flags.Lookup(name)) }

func newReplay(w *cli.World) *cobra.Command {
	var o replayOptions
	c := newCommand("replay", exactly(1, "one FILE", "'rooftop diagnose --record FILE' makes one"), func(c *cobra.Command, args []string) error {
		if err := o.check(w); err != nil {
			return err
		}
		if o.tui {
			return play(c.Context(), w, args[0], &o)
		}
		return replay(w, args[0], &o)
	})
	o.Flags, o.Env = c.Flags(), func(string) (string, bool) { return "", false }
	g := cli.GroupFlags(c)
	f := g.Group("The report")
	cli.Choice(f, &o.Ceiling, "ceiling", "", "`WHICH` ceiling to show: physical or classic (default: the recorded run's)", attach.PhysicalCeiling, attach.ClassicCeiling)
	o.RegisterUnread(g).VisitAll(cli.WithoutVariable) // those of now may be another server's
	f = g.Group("The screen")
	f.BoolVar(&o.tui, "tui", false, "play the recording on the live screen")
	f.Float64Var(&o.speed, "speed", 1, "play `N` seconds of the recording per second, 1 to 60")
	o.screen.Register(f)
	f.StringVar(&o.files.dir, "report-dir", "", "`DIR` for the reports that the key e writes (default the current one)")
	o.Output.Register(g, everything)
	return g.Done()
}

// maxSpeed is the maximum speed of a replay.
const maxSpeed = 60

func (o *replayOptions) check(w *cli.World) error {
	if err := o.CheckFlags(); err != nil {
		return err
	}
	if !o.tui {
		for _, name := range []string{"speed", "theme", "refresh", "mouse", "report-dir"} {
			if o.given(name) {
				return cli.Usagef("replay: --%s is for the screen; add --tui", name)
			}
		}
		return nil
	}
	switch {
	case o.JSON || o.Plain:
		return cli.Usagef("replay: --tui is the screen; leave out --json and --plain, or --tui")
	case !(o.speed >= 1 && o.speed <= maxSpeed):
		return cli.Usagef("replay: --speed %v: give 1 to %d", o.speed, maxSpeed)
	case viewOf(w, &o.Output) != viewScreen:
		return cli.Usagef("replay: --tui needs a terminal for stdin and stdout; without it the report is printed")
	}
	if err := o.screen.Check(); err != nil {
		return err
	}
	return o.files.check()
}

// open opens the recording with what the flags say about its server. done closes the file.
func (o *replayOptions) open(path string) (recording *session.Recording, done func(), err error) {
	if recording, done, err = openRecording("replay", path); err != nil {
		return nil, nil, err
	}
	correct, err := o.Correct(&recording.Header)
	if err != nil {
		done()
		return nil, nil, err
	}
	recording.Alter(correct)
	return recording, done, nil
}

// openRecording opens a recording for a command, which reads it from its file as needed. done closes the
// file.
func openRecording(command, path string) (recording *session.Recording, done func(), err error) {
	f, err := cli.Open(path)
	if err != nil {
		return nil, nil, cli.Usagef("%s: %w", command, err)
	}
	done = func() { _ = f.Close() }
	if recording, err = session.OpenRecording(f); err != nil {
		done()
		return nil, nil, fmt.Errorf("%s %s: %w", command, path, err)
	}
	return recording, done, nil
}

// play shows a recording on the screen.
func play(ctx context.Context, w *cli.World, path string, o *replayOptions) error {
	recording, done, err := o.open(path)
	if err != nil {
		return err
	}
	defer done()
	player, err := session.NewPlayer(recording, cli.Version())
	if err != nil {
		return fmt.Errorf("replay %s: %w", path, err)
	}
	player.Speed(o.speed)
	player.SetExport(o.files.export)
	v := &screenView{w: w, out: &o.Output, options: &o.screen, playback: player}
	return (&following{session: player, view: v, stderr: w.Stderr}).run(ctx)
}

// replay prints the diagnosis of a recording. Without ceiling the page of the recorded run is used.
func replay(w *cli.World, path string, o *replayOptions) error {
	recording, done, err := o.open(path)
	if err != nil {
		return err
	}
	defer done()
	d, err := session.Replay(recording, cli.Version())
	if err != nil {
		return fmt.Errorf("replay %s: %w", path, err)
	}
	if err := write(w, &o.Output, &d, cmp.Or(o.Ceiling, recording.Header.Ceiling)); err != nil {
		return err
	}
	return cli.Exit(outcomeCode(&d))
}
