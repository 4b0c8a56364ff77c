package main

import (
	"time"

	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// processWatch reads what the processes of a server do, by the differences of two
// readings. It is not safe for concurrent use.
type processWatch struct {
	server *proc.Server
	clock  func() time.Duration
	before map[processID]proc.Usage
	at     time.Duration // of the reading before
}

// processID is one process: a number that is used again has another start.
type processID struct {
	pid   int
	ticks uint64
}

// read lists the processes of the server's tree as they are now, and the problems
// of those that were there when it was found.
func (w *processWatch) read() ([]engine.Process, []string, error) {
	fs, err := proc.Open(procRoot)
	if err != nil {
		return nil, nil, err
	}
	var problems []string
	for _, p := range w.server.Health() {
		problems = append(problems, p.String())
	}
	tree, err := fs.Tree(w.server.LaunchPID)
	if err != nil {
		return nil, problems, err
	}
	now := w.clock()
	return w.take(tree, fs.Usage(tree), now, time.Now()), problems, nil
}

// take makes one reading of a tree and what its processes have used so far.
func (w *processWatch) take(tree []proc.Process, used []proc.Usage, now time.Duration, wall time.Time) []engine.Process {
	usage := map[int]proc.Usage{}
	for _, u := range used {
		usage[u.PID] = u
	}
	elapsed := now - w.at
	after := map[processID]proc.Usage{}
	var list []engine.Process
	for _, p := range tree {
		u, ok := usage[p.PID]
		if !ok {
			continue // gone meanwhile
		}
		id := processID{p.PID, p.Ticks}
		after[id] = u
		e := engine.Process{
			PID: p.PID, PPID: p.PPID, Role: string(p.Role), Name: processName(p), State: string(p.State),
			RSSBytes: u.RSSBytes, Threads: u.Threads,
		}
		if !p.Started.IsZero() {
			e.Age = max(0, wall.Sub(p.Started))
		}
		if b, ok := w.before[id]; ok && elapsed > 0 {
			e.CPU = stat.Some(share(u.CPU-b.CPU, elapsed))
			e.RunWait = runWait(b, u, elapsed)
		}
		list = append(list, e)
	}
	w.before, w.at = after, now
	return list
}

// runWait is the share of time that threads were ready and did not run. A kernel
// that does not tell has 0 for ever.
func runWait(before, after proc.Usage, elapsed time.Duration) stat.Opt {
	if after.RunWait == 0 {
		return stat.None
	}
	return stat.Some(share(after.RunWait-before.RunWait, elapsed))
}

func share(part, whole time.Duration) float64 { return max(0, part.Seconds()/whole.Seconds()) }

func processName(p proc.Process) string {
	if p.Title != "" {
		return p.Title
	}
	return p.Comm
}
