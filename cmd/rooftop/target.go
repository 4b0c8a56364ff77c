package main

import (
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/proc"
)

// procRoot is where this machine's processes are read.
const procRoot = "/proc"

// parseTarget reads an address as a person typed it.
func parseTarget(text string) (collect.Target, error) {
	target, err := collect.ParseTarget(text)
	if err != nil {
		return target, usage("--url: %w", err)
	}
	return target, nil
}

// findTarget is the address to attach to: the one given, else the one vLLM of
// this machine, else vLLM's default port.
func findTarget(o *options) (collect.Target, *proc.Server, error) {
	if o.url != "" {
		target, err := parseTarget(o.url)
		return target, nil, err
	}
	servers := localServers()
	switch len(servers) {
	case 0:
		target, err := parseTarget("http://localhost:" + collect.DefaultPort)
		return target, nil, err
	case 1:
		target, err := parseTarget("http://" + reachable(servers[0].Addr))
		return target, servers[0], err
	}
	return collect.Target{}, nil, errSeveral(servers)
}

func localServers() []*proc.Server {
	fs, err := proc.Open(procRoot)
	if err != nil {
		return nil
	}
	servers, err := fs.Servers()
	if err != nil {
		return nil
	}
	return servers
}

// reachable turns a listening address into one to connect to.
func reachable(at netip.AddrPort) string {
	if at.Addr().IsUnspecified() {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port()).String()
	}
	return at.String()
}

// splitHostPort takes a target's address apart; a port outside 1..65535 does not
// get past ParseTarget.
func splitHostPort(t collect.Target) (host string, port uint16) {
	host, text, err := net.SplitHostPort(t.HostPort())
	if err != nil {
		return t.HostPort(), 0
	}
	n, _ := strconv.ParseUint(text, 10, 16)
	return host, uint16(n)
}

// local says whether the target is an address of this machine.
func (a *attached) local() bool {
	host, _ := splitHostPort(a.target)
	ips, ok := proc.Addresses(host)
	if !ok {
		return false
	}
	own, _ := proc.OwnAddresses()
	return slices.ContainsFunc(ips, func(ip netip.Addr) bool { return proc.IsLocal(ip, own) })
}
