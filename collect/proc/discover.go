package proc

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Discover finds the server that listens on a port at one of the given addresses
// of this machine. The caller resolves names (see [Addresses]); own are the addresses
// of this machine's interfaces other than loopback. The error wraps [ErrNotLocal],
// [ErrNotFound] or [ErrPermission].
//
// If the socket's owner may not be read, Discover identifies the server by a vLLM
// command line that names the port, which any user can read, and records that in
// Server.Missing.
func (f FS) Discover(ips, own []netip.Addr, port uint16) (*Server, error) {
	ips = unmapped(ips)
	if !slices.ContainsFunc(ips, func(ip netip.Addr) bool { return IsLocal(ip, own) }) {
		return nil, fmt.Errorf("%w: %s is not an address of this machine; run rooftop where the server runs, or give -m and --model", ErrNotLocal, join(ips))
	}
	pid, at, err := f.listener(ips, port)
	switch {
	case err == nil:
		if inner, ok := f.serverBehindProxy(pid, port); ok {
			return inner, nil
		}
		return f.server(pid, at.addr), nil
	case errors.Is(err, ErrPermission):
		if pid, ok := f.byCommandLine([]netip.Addr{at.addr.Addr()}, port, at.uid); ok {
			s := f.server(pid, at.addr)
			s.Missing = append(s.Missing, engine.Missing{
				What:   "owner of the listening socket",
				Reason: err.Error(),
				Effect: fmt.Sprintf("the server on port %d was identified by its command line: process %d", port, pid),
			})
			return s, nil
		}
	case errors.Is(err, ErrNotFound):
		if s, ok := f.serverInContainer(port); ok {
			return s, nil
		}
	}
	return nil, err
}

func join(ips []netip.Addr) string {
	var names []string
	for _, ip := range ips {
		names = append(names, ip.String())
	}
	return strings.Join(names, ", ")
}

// Servers returns the engines' servers of this machine, ordered by port: each process tree
// with the command line or the process titles of an engine that listens on a port. It
// includes servers in containers, with their address inside the container.
func (f FS) Servers() ([]*Server, error) {
	pids, err := f.PIDs()
	if err != nil {
		return nil, err
	}
	roots := map[int]bool{}
	for _, pid := range pids {
		if root, ok := f.rootOf(pid); ok {
			roots[root] = true
		}
	}
	var servers []*Server
	for _, root := range slices.Sorted(maps.Keys(roots)) {
		if pid, addr, ok := f.servingSocket(root); ok {
			servers = append(servers, f.server(pid, addr))
		}
	}
	slices.SortStableFunc(servers, func(a, b *Server) int { return int(a.Addr.Port()) - int(b.Addr.Port()) })
	return servers, nil
}

// rootOf finds the launch process of the engine's tree that a process belongs to.
func (f processes) rootOf(pid int) (int, bool) {
	argv, err := f.Argv(pid)
	if err != nil || !launch.Likely(argv) {
		return 0, false
	}
	if cfg, err := launch.Parse(argv, nil, nil); err == nil {
		if !cfg.Direct() {
			return 0, false
		}
		_, root := f.launchOf(pid)
		return root, true
	}
	if !ownTitle(title(argv)) {
		return 0, false
	}
	if _, root := f.launchOf(pid); root != 0 {
		return root, true
	}
	// The engine runs inside another program: return the first ancestor without a title of it.
	for _, p := range f.ancestors(pid) {
		if line, err := f.Argv(p); err != nil || !ownTitle(title(line)) {
			return p, err == nil && p > 1
		}
	}
	return 0, false
}

// servingSocket finds the socket on which a tree answers HTTP: the port that its
// command line names, else the lowest port of the root or an API server. A tree
// also has other sockets, for communication between its ranks.
func (f FS) servingSocket(root int) (pid int, addr netip.AddrPort, ok bool) {
	socks, err := f.listening(root)
	if err != nil || len(socks) == 0 {
		return 0, netip.AddrPort{}, false
	}
	want := netip.AddrPortFrom(netip.IPv6Unspecified(), 8000) // vLLM's default, of a server without a command line
	known := false
	if argv, _ := f.launchOf(root); argv != nil {
		if cfg, err := launch.Parse(argv, nil, nil); err == nil {
			known = true
			want = ListenAddr(f.configured(root, argv, cfg))
		}
	}
	tree, err := f.Tree(root)
	if err != nil {
		return 0, netip.AddrPort{}, false
	}
	var held []socket
	readable := false
	for _, p := range tree {
		own, err := f.sockets(p.PID, socks)
		readable = readable || err == nil
		for _, s := range own {
			if s.addr.Port() == want.Port() {
				return p.PID, s.addr, true
			}
			if p.PID == root || p.Role == APIServer {
				held = append(held, s)
			}
		}
	}
	if len(held) > 0 {
		s := slices.MinFunc(held, func(a, b socket) int { return int(a.addr.Port()) - int(b.addr.Port()) })
		return root, s.addr, true
	}
	if !readable && known {
		// Another user's descriptors are unreadable, but the socket table shows the port.
		uid := f.uid(root)
		if i := slices.IndexFunc(socks, func(s socket) bool { return collide(s.addr, want) && s.uid == uid }); i >= 0 {
			return root, socks[i].addr, true
		}
	}
	return 0, netip.AddrPort{}, false
}

// configured returns the configuration with the settings of its config file, or cfg
// itself if it names none or the file cannot be read.
func (f processes) configured(pid int, argv []string, cfg *launch.Config) *launch.Config {
	path := cfg.ConfigPath()
	if path == "" {
		return cfg
	}
	cwd, _ := os.Readlink(f.path(pid, "cwd"))
	text, _, err := f.serverFile(pid, cwd, path, launch.MaxConfigBytes)
	if err != nil {
		return cfg
	}
	if full, err := launch.Parse(argv, nil, text); err == nil {
		return full
	}
	return cfg
}

func configuredPort(cfg *launch.Config) uint16 {
	if n, _, ok := cfg.Int("port"); ok && n > 0 && n < 1<<16 {
		return uint16(n)
	}
	return uint16(cfg.DefaultPort())
}

// Starting returns the launch process of the only vLLM server of this machine whose command line
// names the port, and one of the addresses or none. While nothing listens there, that server is starting.
func (f FS) Starting(ips []netip.Addr, port uint16) (pid int, ok bool) {
	return f.byCommandLine(unmapped(ips), port, anyUser)
}

// anyUser means every user.
const anyUser = -1

// byCommandLine finds the only vLLM server of a user that connections to the port at one
// of the addresses reach by its command line, else the only one whose port is in an
// unreadable config file.
func (f FS) byCommandLine(ips []netip.Addr, port uint16, uid int) (int, bool) {
	pids, err := f.PIDs()
	if err != nil {
		return 0, false
	}
	var named, unknown []int
	for _, pid := range pids {
		root, ok := f.rootOf(pid)
		if !ok || root != pid || uid != anyUser && f.uid(pid) != uid {
			continue
		}
		argv, _ := f.launchOf(root)
		cfg, err := launch.Parse(argv, nil, nil)
		if err != nil {
			continue
		}
		full := f.configured(root, argv, cfg)
		_, _, given := full.Value("port")
		switch {
		case !given && cfg.ConfigPath() != "" && full == cfg:
			unknown = append(unknown, root)
		case len(matchSockets([]socket{{addr: ListenAddr(full)}}, ips, port)) > 0:
			named = append(named, root)
		}
	}
	for _, found := range [][]int{named, unknown} {
		if len(found) > 0 {
			return found[0], len(found) == 1
		}
	}
	return 0, false
}

// serverBehindProxy finds the server behind a container runtime's port proxy.
func (f FS) serverBehindProxy(pid int, port uint16) (*Server, bool) {
	inside, ok := f.proxyTarget(pid, port)
	if !ok {
		return nil, false
	}
	return f.serverInContainer(inside)
}

// serverInContainer finds the only vLLM server that listens on the port in another
// network namespace, that is, in a container.
func (f FS) serverInContainer(port uint16) (*Server, bool) {
	servers, err := f.Servers()
	if err != nil {
		return nil, false
	}
	ours := f.namespace(f.self, "net")
	servers = slices.DeleteFunc(servers, func(s *Server) bool {
		theirs := f.namespace(s.ListenerPID, "net")
		return s.Addr.Port() != port || theirs == "" || theirs == ours
	})
	if len(servers) != 1 {
		return nil, false
	}
	s := servers[0]
	s.Notes = append(s.Notes, fmt.Sprintf("the server runs in a container; it was found by its port there, %d", port))
	return s, true
}
