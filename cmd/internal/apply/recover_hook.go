package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/collect/probe"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
)

// judgeHook decides what is to be done where a program makes the changes.
func (l Left) judgeHook() Left {
	if l.State.Settled() {
		l.Remedy = CloseRun
		l.found("the server runs what is kept")
		l.step("end the run in the journal")
		return l
	}
	program, err := readLaunch(l.Dir, l.State.Kept.Launch)
	if err == nil && len(program.Argv) == 0 {
		err = errors.New("it names no program")
	}
	if err != nil {
		return l.not(Impossible, fmt.Sprintf("the program that makes changes is not known any more (%v); take %s back yourself, and say 'rooftop recover --leave'", err, spelledRecorded(l.State.Unkept)))
	}
	l.program = program
	for _, pid := range callers(program.Argv[0]) {
		l.found("process %d runs %s", pid, program.Argv[0])
		l.step("wait for process %d to end", pid)
	}
	l.Remedy = CallHook
	l.step("run %s with %s, back to the kept configuration", program.Argv[0], spelled(l.undo()))
	l.step("wait until the server answers")
	l.step("end the run in the journal")
	return l
}

// undo are the changes that lead back to what is kept.
func (l *Left) undo() []engine.Change {
	var out []engine.Change
	for _, c := range l.State.Unkept {
		out = append(out, engine.Change{Flag: c.Flag, From: c.To, To: c.From})
	}
	return out
}

// callers are the processes that rooftop called a program in, by PID. One that only
// names the program, an editor or another rooftop, was not given what [call] gives.
func callers(path string) []int {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	var pids []int
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() || !runs(dir, path) {
			continue
		}
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err == nil && !bytes.Contains(append([]byte{0}, env...), []byte("\x00"+revertVariable+"=")) {
			continue
		}
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return pids
}

// runs says that a process runs a program, as a script too, whose interpreter has
// its path among the first words.
func runs(dir, path string) bool {
	const words = 3
	line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil {
		return false
	}
	argv := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	return slices.Contains(argv[:min(words, len(argv))], path)
}

// unauthorized is the status of an answer that asks for a key.
const unauthorized = 401

// callHook has the program take back what may be in place. One that was called by
// the run that was cut off may still be at it: it is waited for first.
func (r *Repair) callHook(ctx context.Context, s *Store, l *Left) error {
	ready := r.Ready
	if ready.URL == "" {
		ready.URL = l.Identity.URL
	}
	for deadline := time.Now().Add(ready.within()); len(callers(l.program.Argv[0])) > 0; {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s still runs (process %s); end it first", l.program.Argv[0], numbers(callers(l.program.Argv[0])))
		}
		if err := pause(ctx, readyPoll); err != nil {
			return err
		}
	}
	c := &Change{
		Schema: ChangeSchema, Iteration: l.State.Iteration, Revert: true, URL: ready.URL, Changes: l.undo(),
		Command: ChangeCommand{Before: l.State.Next.Command, After: l.State.Kept.Command},
	}
	if err := s.Write(journal.Record{
		Kind: journal.Intent, Mode: modeHook, Revert: true, Iteration: c.Iteration, Changes: recorded(c.Changes), Text: "rooftop recover has the change taken back",
	}); err != nil {
		return err
	}
	if r.Say != nil {
		r.Say("running " + l.program.Argv[0])
	}
	grace := r.Grace
	if grace <= 0 {
		grace = Grace
	}
	var w *witness
	if l.State.Stage == journal.Trying { // else what runs may be what is kept
		var err error
		if w, err = ready.witness(ctx); err != nil {
			return err
		}
		defer w.close()
	}
	err := watched(ctx, w, func() error { return call(ctx, l.program, s.Dir(), ready.within(), grace, c) })
	if err == nil {
		err = ready.restarted(ctx, w, filepath.Base(l.program.Argv[0]))
	}
	if status := new(probe.StatusError); errors.As(err, &status) && status.Code == unauthorized && ready.APIKey == "" {
		err = nil // it is up, and the key that it asks for was that of the run
	}
	if err != nil {
		why := "the change could not be taken back: " + l.program.hide(err.Error()) +
			"; mend that and say 'rooftop recover' once more, or take " + spelledRecorded(l.State.Unkept) + " back yourself and say 'rooftop recover --leave'"
		return errors.Join(errors.New(why), s.Write(journal.Record{Kind: journal.Failed, Revert: true, Text: why}))
	}
	if err := s.Write(journal.Record{Kind: journal.Back, Launch: l.State.Kept.Launch, Revert: true}); err != nil {
		return err
	}
	return s.finish(journal.Record{Kind: journal.Recover, Launch: l.State.Kept.Launch, Text: "put back by " + filepath.Base(l.program.Argv[0])})
}
