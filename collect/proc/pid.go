package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// PID finds the process that a user's number refers to: the process with that PID on
// this machine, else the only process with that PID inside a container. note is a
// sentence about the latter and "" for the former. The error wraps [ErrNotFound] and
// lists the candidates if there are several.
func (f processes) PID(number int) (pid int, note string, err error) {
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

// Inner lists the processes that have a PID in a nested PID namespace, such as a
// container's.
func (f processes) Inner(number int) ([]int, error) {
	pids, err := f.PIDs()
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

// comm returns the name of a process, which the kernel truncates to 15 characters; ""
// if it cannot be read.
func (f procfiles) comm(pid int) string {
	text, err := readFile(f.path(pid, "comm"))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(text), "\n")
}

// PortOwner is the process that serves a port.
type PortOwner struct {
	Listener int    // PID that listens
	Comm     string // its name
	// Top is the topmost process of the server: vLLM's launch process, or the listener of
	// any other engine. Wrappers above it (a shell, a container's init) do not count.
	Top int
	// Forwards is true if the listener only forwards the port to a server that was not
	// found.
	Forwards bool
	// Note explains how the process was found, "" if that needs no explanation.
	Note string
}

// tunnels are programs that forward a port to another machine.
var tunnels = []string{"ssh", "sshd", "sshd-session", "autossh", "kubectl", "oc", "tsh", "socat", "cloudflared"}

// PortOwner finds the process that serves a port at one of the addresses, whatever the
// engine, also behind a container runtime's port proxy. The error wraps [ErrNotFound],
// [ErrPermission], or [ErrNotLocal] if the listener is the end of a tunnel.
func (f FS) PortOwner(ips []netip.Addr, port uint16) (PortOwner, error) {
	pid, err := f.Listener(ips, port)
	inside := port
	switch {
	case err == nil && slices.Contains(tunnels, f.comm(pid)):
		return PortOwner{}, fmt.Errorf("%w: process %d (%s) forwards port %d to where the server runs; run rooftop there, or give the server's PID with --pid", ErrNotLocal, pid, f.comm(pid), port)
	case err == nil:
		proxied, ok := f.proxyTarget(pid, port)
		if !ok {
			return f.portOwner(pid, ""), nil
		}
		inside = proxied
	case !errors.Is(err, ErrNotFound):
		return PortOwner{}, err
	}
	if found := f.foreignListeners(inside); len(found) == 1 {
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
	// launchOf may return a wrapper, which is not the top of the server.
	if _, top := f.launchOf(listener); top != 0 && f.isVLLMLaunch(top) {
		h.Top = top
	}
	return h
}

// proxyTarget returns the container port that a process forwards a port to; ok is false
// if the process is not a container runtime's port proxy.
func (f processes) proxyTarget(pid int, port uint16) (inside uint16, ok bool) {
	argv, err := f.Argv(pid)
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

// foreignListeners lists the processes that listen on a port in another network
// namespace, only the topmost of each tree.
func (f FS) foreignListeners(port uint16) []int {
	pids, err := f.PIDs()
	if err != nil {
		return nil
	}
	ours := f.namespace(f.self, "net")
	listens := map[string][]socket{} // by namespace
	owners := map[int]socket{}
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
		if len(socks) > 0 {
			held, _ := f.holding([]int{pid}, socks)
			maps.Copy(owners, held)
		}
	}
	return f.tops(owners)
}
