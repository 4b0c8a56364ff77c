// Package systemd restarts a server that a service of systemd starts: by a drop-in file beside the
// service's own, a reload and a restart, as systemctl edit and systemctl restart do. A change on trial
// stands in a file that a restart of the machine removes; a kept one moves to the administrator's files.
package systemd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply/manager"
	"github.com/rooftop-dev/rooftop/cmd/internal/atomicfile"
	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Names of rooftop's drop-in files. systemd reads drop-in files in the order of their names, and the last
// one decides.
const (
	trialFile = "zzz-rooftop-trial.conf"
	keptFile  = "zz-rooftop.conf"
)

// Unit is a service that starts a server: a manager.Manager. It is not safe for concurrent use.
type Unit struct {
	unit *launcher.Unit
	kept *launcher.Launch // nil in a rooftop that only undoes changes
	runs *launcher.Launch // after the latest change, nil if it was a revert
	// spelled is set if the kept command line has the values of variables, of files that may be secret.
	spelled bool
	conn    *dbus.Conn // nil until it is needed
	// invocation is that of the start by Make, "" before.
	invocation string
}

// Known returns the unit of a launch that an earlier rooftop stored, to undo changes. It connects to
// nothing.
func Known(l *launcher.Launch) *Unit { return &Unit{unit: l.Unit} }

// Mode returns "unit".
func (u *Unit) Mode() string { return serverdir.ModeUnit }

// Name returns the unit's name: "vllm.service".
func (u *Unit) Name() string { return u.unit.Name }

// Launch returns the kept launch with the unit.
func (u *Unit) Launch() *launcher.Launch {
	if u.kept == nil {
		return &launcher.Launch{Unit: u.unit}
	}
	return u.kept
}

// Notes returns where changes stand.
func (u *Unit) Notes() []string {
	return []string{fmt.Sprintf("%s starts the server: a change on trial stands in %s, a kept one in %s", u.Name(), u.unit.Trial, u.unit.Kept)}
}

// Steps returns what Make would do.
func (u *Unit) Steps(c *manager.Change) []string {
	restart := "reload systemd and restart " + u.Name()
	if len(c.All) == 0 {
		return []string{"remove " + u.unit.Trial, restart}
	}
	target, err := u.target(c.All)
	if err != nil {
		return []string{"nothing: " + u.Launch().Hide(err.Error())}
	}
	return []string{fmt.Sprintf("write %s, which starts %s", u.unit.Trial, target.Command()), restart}
}

// target returns the launch of changes to the kept one. Settings of a config file are overridden on the
// command line.
func (u *Unit) target(changes []engine.Change) (*launcher.Launch, error) {
	if u.kept == nil {
		return nil, errors.New("the launch to change is unknown")
	}
	return u.kept.With(changes, true)
}

// Make writes or removes the drop-in file, reloads systemd and restarts the unit.
func (u *Unit) Make(ctx context.Context, c *manager.Change) error {
	var target *launcher.Launch
	if len(c.All) > 0 {
		var err error
		if target, err = u.target(c.All); err != nil {
			return &manager.UntouchedError{Err: err}
		}
	}
	conn, err := u.connect(ctx)
	if err != nil {
		return &manager.UntouchedError{Err: err}
	}
	if err := u.put(ctx, conn, target); err != nil {
		return &manager.UntouchedError{Err: err}
	}
	u.runs, u.invocation = target, ""
	// A unit that failed too often is not started again before this.
	asked, cancel := limited(ctx, answerWithin)
	defer cancel()
	_ = conn.ResetFailedUnitContext(asked, u.Name())
	done := make(chan string, 1)
	if _, err := conn.RestartUnitContext(asked, u.Name(), "replace", done); err != nil {
		return fmt.Errorf("restart %s: %w", u.Name(), err)
	}
	look := time.NewTicker(connectedPoll)
	defer look.Stop()
	result := ""
	for result == "" {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case result = <-done:
		case <-look.C:
			if conn.Connected() {
				continue
			}
			// systemd or its bus was restarted, so the end of the job is no longer reported.
			if conn, err = u.connect(ctx); err != nil {
				return err
			}
			result = "done"
		}
	}
	now, err := u.state(ctx, conn)
	if err != nil {
		return err
	}
	if u.invocation = now.invocation; result != "done" {
		return u.failure(ctx, now)
	}
	return nil
}

// connectedPoll is the time between two looks at the connection to systemd.
const connectedPoll = time.Second

// put puts the drop-in file of a launch in place, or removes it for nil, and reloads systemd. If that
// fails, the unit is as before.
func (u *Unit) put(ctx context.Context, conn *dbus.Conn, target *launcher.Launch) error {
	before, err := os.ReadFile(u.unit.Trial)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err = u.write(u.unit.Trial, u.dropIn(target)); err == nil {
		err = u.reload(ctx, conn)
	}
	if err == nil && target != nil {
		err = u.takes(ctx, conn, target)
	}
	if err != nil {
		err = errors.Join(err, u.write(u.unit.Trial, before), u.reload(context.WithoutCancel(ctx), conn))
	}
	return err
}

// takes returns an error if the unit, as systemd read it, would not start a launch.
func (u *Unit) takes(ctx context.Context, conn *dbus.Conn, target *launcher.Launch) error {
	start, err := u.execStart(ctx, conn)
	if err != nil {
		return err
	}
	if !slices.Equal(start.argv, literal(target.Argv, u.unit.Prefix)) {
		return fmt.Errorf("another drop-in file of %s decides what is started: %s shows it", u.Name(), launch.Line("systemctl", "cat", u.Name()))
	}
	return nil
}

// write replaces a drop-in file and makes its folder; for nil it removes the file, and the folder if that
// is empty.
func (u *Unit) write(path string, text []byte) error {
	dir := filepath.Dir(path)
	if text == nil {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		_ = os.Remove(dir) // fails if it has other files
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return atomicfile.Write(path, u.mode(), func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// mode returns the permissions of a drop-in file. A command line may hold a key, which a unit that only its owner reads
// keeps to itself, and so does the trial from which a kept one is made.
func (u *Unit) mode() fs.FileMode {
	mode := fs.FileMode(0o644)
	if u.spelled {
		mode = 0o600
	}
	for _, path := range []string{u.unit.Fragment, u.unit.Trial} {
		if info, err := os.Stat(path); err == nil {
			mode &= info.Mode().Perm()
		}
	}
	return mode
}

// Ended returns why the server that Make started has ended; nil while it runs.
func (u *Unit) Ended(ctx context.Context) error {
	if u.invocation == "" {
		return nil
	}
	var now state
	conn, err := u.connect(ctx)
	if err == nil {
		now, err = u.state(ctx, conn)
	}
	if known := err == nil; known && (now.invocation != u.invocation || !now.runs()) {
		return u.failure(ctx, now)
	}
	return nil
}

// Keep moves the drop-in file of the latest change to where it lasts. Without one it does nothing.
func (u *Unit) Keep(ctx context.Context) error {
	text, err := os.ReadFile(u.unit.Trial)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, rest, _ := strings.Cut(string(text), "\n")
		err = u.write(u.unit.Kept, []byte(keptHeading+rest))
	}
	if err == nil {
		err = u.write(u.unit.Trial, nil)
	}
	if err != nil {
		return fmt.Errorf("keep the change in %s: %w", u.unit.Kept, err)
	}
	if u.runs != nil {
		u.kept, u.runs = u.runs, nil
	}
	conn, err := u.connect(ctx)
	if err != nil {
		return err
	}
	return u.reload(ctx, conn)
}

// Busy returns nothing: systemd itself finishes what it has begun.
func (u *Unit) Busy() []int { return nil }

// Close ends the connection to systemd.
func (u *Unit) Close() {
	if u.conn != nil {
		u.conn.Close()
		u.conn = nil
	}
}
