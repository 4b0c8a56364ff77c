package attach

import (
	"time"

	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// processWatch measures the activity of a server's processes between two readings. It is
// not safe for concurrent use.
type processWatch struct {
	server *proc.Server
	clock  func() time.Duration
	before map[processID]proc.Usage // previous reading
	busy   time.Duration            // CPU time of all programs at the previous reading, 0 if unknown
	at     time.Duration            // time of the previous reading
}

// processID identifies a process: a reused PID has other ticks.
type processID struct {
	pid   int
	ticks uint64
}

// read returns the processes of the server's tree, problems of those that existed when the server was
// found, and how much of its cores other programs used.
func (w *processWatch) read() (loop.Observed, error) {
	fs, err := proc.Open(ProcRoot)
	if err != nil {
		return loop.Observed{}, err
	}
	var problems []string
	for _, p := range w.server.Health() {
		problems = append(problems, p.String())
	}
	tree, err := fs.Tree(w.server.LaunchPID)
	if err != nil {
		return loop.Observed{Problems: problems}, err
	}
	busy, cpus, _ := fs.CPUTime(w.server.LaunchPID) // 0 if unreadable
	before, at, now := w.busy, w.at, w.clock()
	o := loop.Observed{Processes: w.compare(tree, fs.Usage, now, time.Now()), Problems: problems}
	if before > 0 && busy > 0 && now > at {
		o.OthersCPU = othersCPU(share(busy-before, now-at), o.Processes, cpus)
	}
	w.busy = busy
	return o, nil
}

// othersCPU returns the share of CPUs that programs other than the server used, if all together used so
// many cores; absent if the server's use is not known.
func othersCPU(cores float64, server []loop.Process, cpus int) stat.Opt {
	for i := range server {
		if !server[i].CPU.OK {
			return stat.None
		}
		cores -= server[i].CPU.V
	}
	return stat.Some(min(max(cores/float64(cpus), 0), 1))
}

// compare returns the processes of a tree with their activity since the previous reading,
// and stores their usage as the new reading.
func (w *processWatch) compare(tree []proc.Process, usage func(proc.Process) (proc.Usage, bool), now time.Duration, wall time.Time) []loop.Process {
	elapsed := now - w.at
	after := map[processID]proc.Usage{}
	var list []loop.Process
	for _, p := range tree {
		u, ok := usage(p)
		if !ok {
			continue // it ended meanwhile
		}
		id := processID{p.PID, p.Ticks}
		after[id] = u
		e := loop.Process{
			PID: p.PID, PPID: p.PPID, Role: string(p.Role), Name: processName(p), State: string(p.State),
			RSSBytes: u.RSSBytes, Threads: u.Threads,
		}
		if !p.Started.IsZero() {
			e.Age = max(0, wall.Sub(p.Started))
		}
		if b, ok := w.before[id]; ok && elapsed > 0 {
			e.CPU = stat.Some(share(u.CPU-b.CPU, elapsed))
			e.RunWait = waited(b.RunWait, u.RunWait, elapsed)
		}
		list = append(list, e)
	}
	w.before, w.at = after, now
	return list
}

// waited returns the time that threads were runnable but did not run, per elapsed time; absent if
// the kernel does not report it, which may leave the counter at 0, or a thread ended meanwhile.
func waited(before, after stat.Opt, elapsed time.Duration) stat.Opt {
	if !before.OK || !after.OK || after.V < before.V || after.V == 0 {
		return stat.None
	}
	return stat.Some((after.V - before.V) / elapsed.Seconds())
}

func share(part, whole time.Duration) float64 { return max(0, part.Seconds()/whole.Seconds()) }

func processName(p proc.Process) string {
	if p.Title != "" {
		return p.Title
	}
	return p.Comm
}
