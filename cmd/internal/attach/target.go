package attach

import (
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

// ProcRoot is the procfs of this machine.
const ProcRoot = "/proc"

// ParseTarget parses an address given with --url. The error is a usage error.
func ParseTarget(text string) (collect.Target, error) {
	target, err := collect.ParseTarget(text)
	if err != nil {
		return target, cli.Usagef("--url: %w", err)
	}
	return target, nil
}

// onlyServer returns the only server of a list, or vLLM's default port of this machine if
// the list is empty. It fails for several servers.
func onlyServer(list []*proc.Server) (collect.Target, *proc.Server, error) {
	switch len(list) {
	case 0:
		target, err := ParseTarget("http://localhost:" + collect.DefaultPort)
		return target, nil, err
	case 1:
		target, err := ParseTarget("http://" + reachable(list[0].Addr))
		return target, list[0], err
	}
	return collect.Target{}, nil, errSeveral(list)
}

func localServers() []*proc.Server {
	fs, err := proc.Open(ProcRoot)
	if err != nil {
		return nil
	}
	servers, err := fs.Servers()
	if err != nil {
		return nil
	}
	return servers
}

// reachable returns the address at which to connect to a listening address.
func reachable(at netip.AddrPort) string {
	if at.Addr().IsUnspecified() {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port()).String()
	}
	return at.String()
}

// HostPort returns the host and port of a target. ParseTarget ensures a port in 1..65535.
func HostPort(t collect.Target) (host string, port uint16) {
	host, text, err := net.SplitHostPort(t.HostPort())
	if err != nil {
		return t.HostPort(), 0
	}
	n, _ := strconv.ParseUint(text, 10, 16)
	return host, uint16(n)
}

// Local reports whether the server runs on this machine.
func (a *Server) Local() bool {
	return a.Workload == nil && Here(a.Target)
}

// Here reports whether an address is certainly one of this machine: a name other than localhost is not resolved.
func Here(t collect.Target) bool {
	host, _ := HostPort(t)
	ips, ok := proc.Addresses(host)
	if !ok {
		return false
	}
	own, _ := proc.OwnAddresses()
	return slices.ContainsFunc(ips, func(ip netip.Addr) bool { return proc.IsLocal(ip, own) })
}

// Listed returns the servers among this machine's processes.
func Listed() []tuning.ListedServer {
	var list []tuning.ListedServer
	for _, s := range localServers() {
		l := tuning.ListedServer{URL: "http://" + reachable(s.Addr), Process: s.Name()}
		if inOwnNetwork(s) {
			l.URL, l.Process = "", l.Process+", in a network of its own: ask the user for the --url that leads to it"
		}
		if s.Launch != nil {
			l.Launch = s.Launch.String()
		}
		list = append(list, l)
	}
	return list
}
