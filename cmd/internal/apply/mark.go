package apply

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
)

// markVariable is set in the environment of a server on trial, and of no server that is put back. Its value
// is a mark, as JSON.
const markVariable = "ROOFTOP_TRIAL"

// mark describes a process whose journal was lost. It has no secrets.
type mark struct {
	Dir     string          `json:"dir"`     // of the journal
	By      journal.Process `json:"by"`      // rooftop
	Changes string          `json:"changes"` // --max-num-seqs 4 → 8
	Command string          `json:"command"` // that the changes were made to, redacted
}

// maxMarked limits the command in a mark, in bytes: a variable has room for 128 KiB.
const maxMarked = 16 << 10

// marked returns a launch to start: a trial with its mark.
func (s *owned) marked(l *launcher.Launch, changes []engine.Change) *launcher.Launch {
	if l == s.kept {
		return l
	}
	m := mark{Dir: s.plan.Journal.Dir(), By: journal.Process{PID: os.Getpid(), Boot: s.boot}, Changes: s.kept.Hide(engine.JoinChanges(changes)), Command: s.kept.Command()}
	m.Command = strings.ToValidUTF8(m.Command[:min(len(m.Command), maxMarked)], "")
	if found, err := s.fs.Find(m.By.PID); err == nil {
		m.By.Ticks = found.Ticks
	}
	text, err := json.Marshal(m)
	if err != nil {
		return l // the journal has it all
	}
	d := *l
	d.Env = append(unmarked(l.Env), markVariable+"="+string(text))
	return &d
}

// unmarked returns an environment without a mark.
func unmarked(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool { return strings.HasPrefix(entry, markVariable+"=") })
}

// lost returns the running trials whose journals below root are gone. Their marks are believed if they can only
// be from the user who asks.
func lost(root string) []Left {
	h, err := newHost(0)
	if err != nil {
		return nil
	}
	pids, err := h.fs.PIDs()
	if err != nil {
		return nil
	}
	var list []Left
	for _, pid := range pids {
		if l := h.lost(root, pid); l != nil {
			list = append(list, *l)
		}
	}
	return list
}

// lost describes a process that is on trial and whose journal below root is gone; nil for any other.
func (h *host) lost(root string, pid int) *Left {
	m, ok := h.mark(pid)
	if !ok || filepath.Dir(m.Dir) != filepath.Clean(root) {
		return nil
	}
	one, err := h.fs.Find(pid)
	p := h.adopt(journal.Process{PID: pid, Ticks: one.Ticks, Boot: h.boot})
	// The processes that a server starts have its mark, but it leads their session.
	if err != nil || !p.session || serverdir.Knows(filepath.Join(root, filepath.Base(m.Dir)), p.Process) {
		return nil
	}
	return h.describeLost(m, p)
}

// mark returns the mark of a process.
func (h *host) mark(pid int) (m mark, ok bool) {
	env, err := h.fs.Environ(pid)
	if err != nil {
		return m, false
	}
	i := slices.IndexFunc(env, func(entry string) bool { return strings.HasPrefix(entry, markVariable+"=") })
	return m, i >= 0 && json.Unmarshal([]byte(strings.TrimPrefix(env[i], markVariable+"=")), &m) == nil
}

// describeLost describes a trial without a journal.
func (h *host) describeLost(m mark, p *process) *Left {
	l := Left{Dir: m.Dir, Identity: serverdir.Identity{Host: fmt.Sprintf("process %d", p.PID)}, Unread: true, lost: true}
	around, err := h.fs.Surroundings(p.PID)
	if err != nil || around.UID != os.Geteuid() {
		m.Changes, m.Command = "a change", ""
	}
	l.found("process %d was started by rooftop for a trial of %s", p.PID, m.Changes)
	if m.Command != "" {
		l.found("before that it was %s", m.Command)
	}
	if h.same(m.By) {
		l = l.withWhy(LeaveAlone, fmt.Sprintf("its journal is gone, and the rooftop that tries it still runs (process %d)", m.By.PID))
		return &l
	}
	l.found("its journal is gone")
	l = l.withWhy(Impossible, "what exactly ran before is unknown without the journal: unless you kept that change, restart the server as it was")
	return &l
}
