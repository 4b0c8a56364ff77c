package proc

import (
	"net"
	"net/netip"
	"slices"
	"strings"
)

// IsLocal reports whether an address belongs to this machine: loopback, the unspecified
// address, or one of own.
func IsLocal(ip netip.Addr, own []netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return ip.IsLoopback() || ip.IsUnspecified() || slices.Contains(unmapped(own), ip)
}

// Addresses returns the addresses of a host that needs no resolver: an IP literal, with
// or without brackets, or localhost. ok is false for any other host.
func Addresses(host string) (ips []netip.Addr, ok bool) {
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return nil, false
	}
	return []netip.Addr{ip}, true
}

// OwnAddresses lists the addresses of this machine's interfaces. It asks the
// kernel, not the network.
func OwnAddresses() ([]netip.Addr, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var own []netip.Addr
	for _, a := range list {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			own = append(own, prefix.Addr())
		}
	}
	return own, nil
}
