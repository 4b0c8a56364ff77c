package proc

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/rooftop-dev/rooftop/engine/launch"
)

// tcpListen is the state of a listening socket in /proc/net/tcp.
const tcpListen = 0x0A

// socket is one listening TCP socket.
type socket struct {
	addr  netip.AddrPort
	inode uint64
	uid   int // user that owns it
}

// listening lists the listening TCP sockets in the network namespace of a process, or
// in our own for PID 0.
func (f FS) listening(pid int) ([]socket, error) {
	ns := f.mount
	if pid != 0 {
		var err error
		if ns, err = procfs.NewFS(f.path(pid)); err != nil {
			return nil, err
		}
	}
	tcp, err := ns.NetTCP()
	if err != nil {
		return nil, fmt.Errorf("list sockets: %w", err)
	}
	// A kernel without IPv6 has no tcp6.
	tcp6, _ := ns.NetTCP6()
	var socks []socket
	for _, l := range slices.Concat(tcp, tcp6) {
		if l.St != tcpListen {
			continue
		}
		ip, ok := netip.AddrFromSlice(l.LocalAddr)
		if !ok {
			continue
		}
		socks = append(socks, socket{netip.AddrPortFrom(ip.Unmap(), uint16(l.LocalPort)), l.Inode, int(l.UID)})
	}
	return socks, nil
}

// matchSockets returns the sockets that a connection to one of the addresses reaches:
// those bound to such an address, else those bound to all addresses.
func matchSockets(socks []socket, ips []netip.Addr, port uint16) []socket {
	var exact, wild []socket
	for _, s := range socks {
		switch {
		case s.addr.Port() != port:
		case s.addr.Addr().IsUnspecified():
			wild = append(wild, s)
		case slices.Contains(ips, s.addr.Addr()), slices.ContainsFunc(ips, netip.Addr.IsUnspecified) && s.addr.Addr().IsLoopback():
			exact = append(exact, s)
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return wild
}

// collide reports whether a listener at one address keeps another from listening at the
// other. An IPv6 socket at every address takes IPv4 connections as well: /proc does not
// show whether IPV6_V6ONLY excludes them.
func collide(a, b netip.AddrPort) bool {
	x, y := a.Addr().Unmap().WithZone(""), b.Addr().Unmap().WithZone("")
	switch {
	case a.Port() != b.Port():
		return false
	case x == y, x == netip.IPv6Unspecified(), y == netip.IPv6Unspecified():
		return true
	}
	return (x.IsUnspecified() || y.IsUnspecified()) && x.Is4() == y.Is4()
}

// ListenAddr returns the address at which a server with this configuration listens: the
// unspecified IPv6 address, which means every address, if it names none or a host that needs a
// resolver.
func ListenAddr(cfg *launch.Config) netip.AddrPort {
	host, _, _ := cfg.Value("host")
	at := netip.IPv6Unspecified()
	if ips, ok := Addresses(host); ok {
		at = ips[0].Unmap().WithZone("")
	}
	return netip.AddrPortFrom(at, configuredPort(cfg))
}

// Listener returns the process that listens on a port at one of the given
// addresses. If several processes share the socket, as children of a forking server
// do, it returns the topmost; if several servers share the port, the one that started
// first. The error wraps [ErrNotFound] or [ErrPermission].
func (f FS) Listener(ips []netip.Addr, port uint16) (pid int, err error) {
	pid, _, err = f.listener(unmapped(ips), port)
	return pid, err
}

func unmapped(ips []netip.Addr) []netip.Addr {
	out := make([]netip.Addr, len(ips))
	for i, ip := range ips {
		out[i] = ip.Unmap().WithZone("")
	}
	return out
}

func (f FS) listener(ips []netip.Addr, port uint16) (pid int, at socket, err error) {
	all, err := f.listening(0)
	if err != nil {
		return 0, socket{}, err
	}
	socks := matchSockets(all, ips, port)
	if len(socks) == 0 {
		return 0, socket{}, fmt.Errorf("%w listens on port %d here; check the port, or whether the server runs in a container or on another machine", ErrNotFound, port)
	}
	owners, unreadable, err := f.owners(socks)
	if err != nil {
		return 0, socket{}, err
	}
	if len(owners) == 0 {
		return 0, socks[0], f.noOwner(socks[0], unreadable)
	}
	tops := f.tops(owners)
	if len(tops) == 0 { // a loop caused by a reused PID
		tops = slices.Sorted(maps.Keys(owners))
	}
	pid = slices.MinFunc(tops, func(a, b int) int { return cmp.Compare(f.started(a), f.started(b)) })
	return pid, owners[pid], nil
}

// noOwner explains why a socket that exists has no process.
func (f FS) noOwner(s socket, unreadable int) error {
	if unreadable > 0 || s.uid != os.Geteuid() {
		return fmt.Errorf("%w: the process that listens on port %d belongs to user %d, whose /proc entries user %d may not read; run rooftop as that user or as root", ErrPermission, s.addr.Port(), s.uid, os.Geteuid())
	}
	return fmt.Errorf("%w owns the socket on port %d: it is in another PID namespace; run rooftop on the host, or with --pid=host", ErrNotFound, s.addr.Port())
}

// owners maps the processes that have one of the sockets open to that socket, and counts
// processes whose descriptors are unreadable. It tries processes that look like a
// server first and the others only if none matched, because following every
// descriptor of a machine is slow.
func (f FS) owners(socks []socket) (owners map[int]socket, unreadable int, err error) {
	pids, err := f.PIDs()
	if err != nil {
		return nil, 0, err
	}
	var likely, others []int
	for _, pid := range pids {
		if f.looksLikeServer(pid) {
			likely = append(likely, pid)
		} else {
			others = append(others, pid)
		}
	}
	for _, group := range [][]int{likely, others} {
		found, hidden := f.holding(group, socks)
		unreadable += hidden
		if len(found) > 0 {
			return found, unreadable, nil
		}
	}
	return nil, unreadable, nil
}

// holding maps those of the processes that have one of the sockets open to that socket, and
// counts processes whose descriptors are unreadable.
func (f FS) holding(pids []int, socks []socket) (owners map[int]socket, unreadable int) {
	owners = map[int]socket{}
	for _, pid := range pids {
		held, err := f.sockets(pid, socks)
		if denied(err) {
			unreadable++
		}
		if len(held) > 0 {
			owners[pid] = held[0]
		}
	}
	return owners, unreadable
}

// looksLikeServer reports whether a process may belong to a vLLM server, by its name.
func (f FS) looksLikeServer(pid int) bool {
	comm := strings.ToLower(f.comm(pid))
	return slices.ContainsFunc([]string{"vllm", "python", "pt_main", "uvicorn", "ray"}, func(s string) bool { return strings.Contains(comm, s) })
}

// sockets lists those of socks that a process has open.
func (f FS) sockets(pid int, socks []socket) (held []socket, err error) {
	targets, err := f.descriptors(pid)
	for _, target := range targets {
		inode, ok := socketInode(target)
		if !ok {
			continue
		}
		if i := slices.IndexFunc(socks, func(s socket) bool { return s.inode == inode }); i >= 0 {
			held = append(held, socks[i])
		}
	}
	return held, err
}

// descriptors lists the link targets of a process's open descriptors.
func (f procfiles) descriptors(pid int) ([]string, error) {
	dir := f.path(pid, "fd")
	names, err := readDir(dir)
	if err != nil {
		return nil, err
	}
	var targets []string
	for _, name := range names {
		if target, err := os.Readlink(filepath.Join(dir, name)); err == nil {
			targets = append(targets, target)
		}
	}
	return targets, nil
}

func readDir(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// socketInode returns the inode in the link target of a socket, "socket:[4242]".
func socketInode(target string) (uint64, bool) {
	digits, ok := strings.CutPrefix(target, "socket:[")
	if !ok {
		return 0, false
	}
	inode, err := strconv.ParseUint(strings.TrimSuffix(digits, "]"), 10, 64)
	return inode, err == nil
}

// tops lists the owners that have no ancestor among them, ordered by PID.
func (f processes) tops(owners map[int]socket) []int {
	var tops []int
	for pid := range owners {
		if !slices.ContainsFunc(f.ancestors(pid), func(up int) bool { _, ok := owners[up]; return ok }) {
			tops = append(tops, pid)
		}
	}
	slices.Sort(tops)
	return tops
}

// started returns when a process started, in clock ticks since boot; the latest time if it ended.
func (f procfiles) started(pid int) uint64 {
	st, err := f.stat(pid)
	if err != nil {
		return math.MaxUint64
	}
	return st.Starttime
}

// ancestors lists the ancestors of a process, the nearest first.
func (f procfiles) ancestors(pid int) []int {
	var up []int
	for range 64 { // a deeper chain is a loop caused by a reused PID
		st, err := f.stat(pid)
		if err != nil || st.PPID <= 0 || slices.Contains(up, st.PPID) {
			return up
		}
		up = append(up, st.PPID)
		pid = st.PPID
	}
	return up
}
