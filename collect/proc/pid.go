package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// PID finds the process that a number means to whoever gave it: the one with that
// PID here, else the one process that has it within a container. note says so of
// the latter, "" of the former. The error wraps [ErrNotFound] and lists the
// candidates where there are several.
func (f FS) PID(number int) (pid int, note string, err error) {
	if _, err := os.Stat(f.path(number)); !errors.Is(err, fs.ErrNotExist) || f.hidden(number, err) {
		return number, "", nil
	}
	inner, err := f.Inner(number)
	switch {
	case err != nil:
		return 0, "", err
	case len(inner) == 1:
		return inner[0], fmt.Sprintf("process %d of a container, which is %d here", number, inner[0]), nil
	case len(inner) > 1:
		var list []string
		for _, p := range inner {
			list = append(list, fmt.Sprintf("%d (%s)", p, f.comm(p)))
		}
		return 0, "", fmt.Errorf("%w %d here; %d containers have one: give one of --pid %s", ErrNotFound, number, len(inner), strings.Join(list, ", "))
	}
	return 0, "", fmt.Errorf("%w %d: find it with pgrep -x NAME, or leave --pid out to find the server by its port", ErrNotFound, number)
}

// Inner lists the processes that have a number in a PID namespace below this one,
// which is how a container numbers them.
func (f FS) Inner(number int) ([]int, error) {
	pids, err := f.pids()
	if err != nil {
		return nil, err
	}
	var found []int
	for _, pid := range pids {
		if all := f.numbers(pid); len(all) > 1 && slices.Contains(all[1:], number) {
			found = append(found, pid)
		}
	}
	return found, nil
}

// comm is a process's name, cut to 15 characters by the kernel; "" where it
// cannot be read.
func (f FS) comm(pid int) string {
	text, err := readFile(f.path(pid, "comm"))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(text), "\n")
}

// PortOwner is who serves a port.
type PortOwner struct {
	Listener int    // PID that listens
	Comm     string // its name
	// Top is the top of the server's own processes: a vLLM's launch process, any other
	// engine's listener. Wrappers above it, a shell or a container's init, are not of
	// the server.
	Top int
	// Forwards says that the listener only passes the port on, to a server that was not
	// found.
	Forwards bool
	// Note says what to know of the way it was found, "" nothing.
	Note string
}

// tunnels pass a port on to another machine.
var tunnels = []string{"ssh", "sshd", "sshd-session", "autossh", "kubectl", "oc", "tsh", "socat", "cloudflared"}

// PortOwner finds the process that serves a port at one of the addresses, of any
// engine, also behind a container runtime's port proxy. The error wraps
// [ErrNotFound], [ErrPermission], or [ErrNotLocal] of a tunnel's end.
func (f FS) PortOwner(ips []netip.Addr, port uint16) (PortOwner, error) {
	pid, err := f.Listener(ips, port)
	inside := port
	switch {
	case err == nil && slices.Contains(tunnels, f.comm(pid)):
		return PortOwner{}, fmt.Errorf("%w: process %d (%s) forwards port %d to where the server runs; run rooftop there, or give the server's PID with --pid", ErrNotLocal, pid, f.comm(pid), port)
	case err == nil:
		proxied, ok := f.proxied(pid, port)
		if !ok {
			return f.portOwner(pid, ""), nil
		}
		inside = proxied
	case !errors.Is(err, ErrNotFound):
		return PortOwner{}, err
	}
	if found := f.foreign(inside); len(found) == 1 {
		return f.portOwner(found[0], fmt.Sprintf("the server runs in a container; it was found by its port there, %d", inside)), nil
	}
	if err != nil {
		return PortOwner{}, err
	}
	owner := f.portOwner(pid, fmt.Sprintf("process %d only forwards the port to a container; give the server's PID with --pid", pid))
	owner.Forwards = true
	return owner, nil
}

func (f FS) portOwner(listener int, note string) PortOwner {
	h := PortOwner{Listener: listener, Comm: f.comm(listener), Top: listener, Note: note}
	// A wrapper's command line may hold the server's: then nothing below it is known.
	if _, top := f.launchOf(listener); top != 0 && f.launches(top) {
		h.Top = top
	}
	return h
}

// proxied tells whether a process forwards a port into a container, and to which
// port there.
func (f FS) proxied(pid int, port uint16) (inside uint16, ok bool) {
	argv, err := f.argv(pid)
	if err != nil || len(argv) == 0 {
		return 0, false
	}
	switch filepath.Base(argv[0]) {
	case "docker-proxy":
		if i := slices.Index(argv, "-container-port"); i >= 0 && i+1 < len(argv) {
			if n, err := strconv.ParseUint(argv[i+1], 10, 16); err == nil {
				return uint16(n), true
			}
		}
		return port, true
	case "rootlessport", "rootlesskit", "slirp4netns", "pasta", "pasta.avx2", "conmon":
		return port, true
	}
	return 0, false
}

// foreign lists the processes that listen on a port in another network namespace,
// the topmost of each tree.
func (f FS) foreign(port uint16) []int {
	pids, err := f.pids()
	if err != nil {
		return nil
	}
	ours := f.namespace(f.self, "net")
	listens := map[string][]socket{} // by namespace
	owners := map[int]uint64{}
	for _, pid := range pids {
		ns := f.namespace(pid, "net")
		if ns == "" || ns == ours {
			continue
		}
		socks, known := listens[ns]
		if !known {
			all, _ := f.listening(pid)
			socks = slices.DeleteFunc(all, func(s socket) bool { return s.addr.Port() != port })
			listens[ns] = socks
		}
		if len(socks) == 0 {
			continue
		}
		if inode, _ := f.holds(pid, socks); inode != 0 {
			owners[pid] = inode
		}
	}
	var found []int
	for _, pid := range pids {
		if _, ok := owners[pid]; ok && !f.hasAncestor(pid, owners) {
			found = append(found, pid)
		}
	}
	return found
}
