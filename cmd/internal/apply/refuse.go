package apply

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/collect/proc"
)

// refusal returns a *RefusedError if a server must not be restarted in place, because
// something else would restart it or because it cannot be restored exactly; else nil.
func refusal(found *proc.Server, around *proc.Surroundings) error {
	fs, pid := found.FS(), found.LaunchPID
	for _, why := range []string{
		readable(found, around),
		contained(fs, pid, around),
		confined(fs, pid, around),
		serviced(found),
		supervised(fs.Ancestors(pid), fs.Ancestors(os.Getpid()), around),
		shared(fs, found.Addr),
	} {
		if why != "" {
			return &RefusedError{why}
		}
	}
	return nil
}

// readable returns what of the process cannot be read or reproduced; "" if everything can.
func readable(found *proc.Server, around *proc.Surroundings) string {
	pid := found.LaunchPID
	switch {
	case found.Launch == nil:
		return fmt.Sprintf("process %d shows no command line of an inference server that rooftop knows", pid)
	case around.UID != os.Geteuid() && os.Geteuid() != 0:
		return fmt.Sprintf("process %d belongs to user %d, and rooftop runs as user %d", pid, around.UID, os.Geteuid())
	case around.Mixed:
		return fmt.Sprintf("process %d runs with the rights of several users", pid)
	case around.Gone:
		return fmt.Sprintf("the program of process %d, %s, was replaced since it started", pid, around.Exe)
	case around.Dropped || found.Cwd == "":
		return fmt.Sprintf("the working directory of process %d was removed", pid)
	}
	if n, _, ok := found.Launch.Int("nnodes"); ok && n > 1 {
		return "the server runs on several machines"
	}
	return ""
}

// contained returns why the server counts as running in a container; "" if it does not.
func contained(fs proc.FS, pid int, around *proc.Surroundings) string {
	if around.InnerPID == 1 {
		return fmt.Sprintf("process %d is the main process of its container, which would end with it", pid)
	}
	if kinds := fs.Foreign(pid); len(kinds) > 0 {
		return fmt.Sprintf("process %d is in a container (namespaces %s are not rooftop's)", pid, strings.Join(kinds, ", "))
	}
	for _, group := range around.Cgroups {
		// If rooftop is in the same group, it restarts a server in its own container.
		for _, mark := range []string{"/docker", "/kubepods", "/libpod", "/crio", "/cri-containerd", "/lxc.payload", "/machine.slice/"} {
			if strings.Contains(group, mark) && !slices.Contains(fs.Cgroups(os.Getpid()), group) {
				return fmt.Sprintf("process %d is in a container (control group %s)", pid, group)
			}
		}
	}
	return ""
}

// confined returns how the server is more or less confined than what rooftop starts; "" if it is not.
func confined(fs proc.FS, pid int, around *proc.Surroundings) string {
	own, err := fs.Surroundings(os.Getpid())
	if err != nil {
		return fmt.Sprintf("the rights of process %d cannot be compared with rooftop's (%v)", pid, err)
	}
	for _, what := range slices.Sorted(maps.Keys(around.Confined)) {
		if theirs, ours := around.Confined[what], own.Confined[what]; theirs != ours {
			return fmt.Sprintf("process %d has other rights than a restart would give it (%s %s, rooftop's is %s)", pid, what, theirs, ours)
		}
	}
	return ""
}

// serviced returns a sentence if a service of systemd starts the server; "" if none does.
func serviced(found *proc.Server) string {
	name, _ := found.Service()
	if name == "" {
		return ""
	}
	return fmt.Sprintf("systemd runs the server as %s and restarts it by itself", name)
}

// supervisors are programs that restart their children when they end, or end with them.
var supervisors = []string{
	"supervisord", "runsv", "runsvdir", "s6-supervise", "s6-svscan", "supervise", "svscan", "circusd", "monit", "pm2", "PM2", "forever", "nodemon",
	"god", "foreman", "honcho", "overmind", "hivemind", "goreman", "watchmedo", "watchexec", "entr", "systemd-run",
	"tini", "dumb-init", "docker-init", "catatonit", "conmon", "containerd-shim", "containerd-shim-runc-v2", "dockerd", "kubelet",
	"slurmstepd", "slurmd", "srun", "mpirun", "orted", "torchrun", "raylet", "ray", "nomad", "timeout", "rooftop",
}

// supervised returns a sentence if an ancestor supervises the server, else "". It ignores an
// ancestor that is not the direct parent and is also above rooftop.
func supervised(above, own []proc.Ancestor, around *proc.Surroundings) string {
	for i, a := range above {
		name := supervisorName(a)
		shared := slices.ContainsFunc(own, func(o proc.Ancestor) bool { return o.PID == a.PID })
		if name == "" || i > 0 && (a.PID == 1 || shared) {
			continue
		}
		if name == "rooftop" && !slices.Contains(a.Argv, "tune") {
			continue
		}
		return fmt.Sprintf("process %d (%s) supervises the server and would notice its end", a.PID, name)
	}
	if len(above) > 0 && above[0].PID == 1 && above[0].Session == around.Session && above[0].Session != 0 {
		return fmt.Sprintf("process 1 (%s) started the server, and the container may end with it", above[0].Name)
	}
	return ""
}

// supervisorName returns the name of a supervisor; "" for any other process.
func supervisorName(a proc.Ancestor) string {
	names := []string{a.Name}
	for _, word := range a.Argv[:min(2, len(a.Argv))] {
		// PM2's title is "PM2 v5.3: God Daemon (/root/.pm2)"; a Python program is the
		// interpreter's first argument.
		first, _, _ := strings.Cut(word, " ")
		names = append(names, filepath.Base(first))
	}
	for _, name := range names {
		if slices.Contains(supervisors, name) {
			return name
		}
	}
	return ""
}

// shared returns a sentence if several servers listen at the address, else "".
func shared(fs proc.FS, at netip.AddrPort) string {
	pids, _, err := fs.Holders(at)
	if err != nil || len(pids) < 2 {
		return ""
	}
	return fmt.Sprintf("several servers share port %d (processes %s)", at.Port(), strings.Trim(fmt.Sprint(pids), "[]"))
}

// shells are programs that run scripts and wait for the processes that they started.
var shells = []string{"sh", "bash", "dash", "zsh", "ash", "ksh", "fish"}

// noteParent adds a note about what the server's parent may do when the server ends, and
// sets how long to watch for that after the first stop.
func (a *Attach) noteParent(list []proc.Ancestor) {
	if len(list) == 0 || list[0].PID == 1 {
		return
	}
	parent := list[0]
	a.returns, a.returnWithin = fmt.Sprintf("process %d (%s)", parent.PID, parent.Name), returnWithin
	switch scripted := len(parent.Argv) > 1 && !slices.Contains([]string{"-i", "-l", "--login"}, parent.Argv[1]); {
	case !slices.Contains(shells, parent.Name):
		a.notes = append(a.notes, fmt.Sprintf("process %d (%s) started the server and may react when it stops", parent.PID, parent.Name))
	case scripted: // an interactive shell says that a job ended, and does no more
		a.notes = append(a.notes, fmt.Sprintf("a script (%s, process %d) started the server and continues when it stops: make sure that it does not start another one", parent.Name, parent.PID))
	}
}
