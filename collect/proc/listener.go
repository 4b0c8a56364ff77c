package proc

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// tcpListen is the state of a listening socket in /proc/net/tcp.
const tcpListen = 0x0A

// socket is one listening TCP socket.
type socket struct {
	addr  netip.AddrPort
	inode uint64
	uid   int // user that owns it
}

// listening lists the listening TCP sockets of a network namespace: of the
// process with the given PID, or our own for 0.
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

// match picks the sockets that a connection to one of the addresses reaches: a
// socket bound to just that address before one bound to all.
func match(socks []socket, ips []netip.Addr, port uint16) []socket {
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

// Listener returns the process that listens on a port at one of the given
// addresses. Where several processes share the socket, which children of a
// forking server do, it is the topmost of them; where several servers share the
// port, the one that started first. The error wraps [ErrNotFound] or
// [ErrPermission].
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
	socks := match(all, ips, port)
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
	pid = f.topmost(owners)
	i := slices.IndexFunc(socks, func(s socket) bool { return s.inode == owners[pid] })
	return pid, socks[i], nil
}

// noOwner explains why a socket that exists has no process.
func (f FS) noOwner(s socket, unreadable int) error {
	if unreadable > 0 || s.uid != os.Geteuid() {
		return fmt.Errorf("%w: the process that listens on port %d belongs to user %d, whose /proc entries user %d may not read; run rooftop as that user or as root", ErrPermission, s.addr.Port(), s.uid, os.Geteuid())
	}
	return fmt.Errorf("%w owns the socket on port %d: it is in another PID namespace; run rooftop on the host, or with --pid=host", ErrNotFound, s.addr.Port())
}

// owners maps the processes that hold one of the sockets to its inode.
// Processes that look like a server are asked first, the others only where none
// of those holds it: following each descriptor of a machine takes long.
func (f FS) owners(socks []socket) (owners map[int]uint64, unreadable int, err error) {
	pids, err := f.pids()
	if err != nil {
		return nil, 0, err
	}
	var likely, others []int
	for _, pid := range pids {
		if f.likely(pid) {
			likely = append(likely, pid)
		} else {
			others = append(others, pid)
		}
	}
	owners = map[int]uint64{}
	for _, group := range [][]int{likely, others} {
		for _, pid := range group {
			inode, err := f.holds(pid, socks)
			if denied(err) {
				unreadable++
			}
			if inode != 0 {
				owners[pid] = inode
			}
		}
		if len(owners) > 0 {
			break
		}
	}
	return owners, unreadable, nil
}

// likely tells whether a process may be a vLLM server's, by its name.
func (f FS) likely(pid int) bool {
	data, err := readFile(f.path(pid, "comm"))
	if err != nil {
		return false
	}
	comm := strings.ToLower(string(data))
	return slices.ContainsFunc([]string{"vllm", "python", "pt_main", "uvicorn", "ray"}, func(s string) bool { return strings.Contains(comm, s) })
}

// holds returns the inode of the socket among socks that a process holds, 0
// where it holds none.
func (f FS) holds(pid int, socks []socket) (uint64, error) {
	dir := f.path(pid, "fd")
	entries, err := readDir(dir)
	if err != nil {
		return 0, err
	}
	for _, name := range entries {
		target, err := os.Readlink(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		inode, ok := socketInode(target)
		if ok && slices.ContainsFunc(socks, func(s socket) bool { return s.inode == inode }) {
			return inode, nil
		}
	}
	return 0, nil
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

// socketInode reads a descriptor's target, "socket:[4242]".
func socketInode(target string) (uint64, bool) {
	digits, ok := strings.CutPrefix(target, "socket:[")
	if !ok {
		return 0, false
	}
	inode, err := strconv.ParseUint(strings.TrimSuffix(digits, "]"), 10, 64)
	return inode, err == nil
}

// topmost picks, of processes that share a socket or a port, the one that has no
// ancestor among them and started first.
func (f FS) topmost(owners map[int]uint64) int {
	best, bestStart := 0, uint64(0)
	for pid := range owners {
		if f.hasAncestor(pid, owners) {
			continue
		}
		st, err := f.stat(pid)
		if err != nil {
			continue
		}
		if best == 0 || st.Starttime < bestStart || st.Starttime == bestStart && pid < best {
			best, bestStart = pid, st.Starttime
		}
	}
	if best == 0 {
		for pid := range owners {
			if best == 0 || pid < best {
				best = pid
			}
		}
	}
	return best
}

func (f FS) hasAncestor(pid int, among map[int]uint64) bool {
	for _, ancestor := range f.ancestors(pid) {
		if _, ok := among[ancestor]; ok {
			return true
		}
	}
	return false
}

// ancestors lists the parents of a process, the nearest first, without init.
func (f FS) ancestors(pid int) []int {
	var up []int
	for range 64 { // deeper trees are loops of a reused PID
		st, err := f.stat(pid)
		if err != nil || st.PPID <= 0 || slices.Contains(up, st.PPID) {
			return up
		}
		up = append(up, st.PPID)
		pid = st.PPID
	}
	return up
}
