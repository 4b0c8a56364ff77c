// Package porttest gives tests addresses for servers that must be told where to listen, or that listen again at
// the same address. A server inside the test listens on port 0 instead and keeps its listener.
package porttest

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
)

// Ports of addresses are below those that Linux gives to connections (ip_local_port_range, by default from 32768).
const (
	firstPort = 20000
	ports     = 12000
)

// given counts the ports that were given. Only after all of them a port is given again.
var given atomic.Uint32

// Address returns a loopback address and port that no other process uses before, during or after a restart of
// the server that listens there. On Linux the address is this test process's alone: 127.64.0.0/10 with the 22
// bits of its PID. Elsewhere only 127.0.0.1 is routed, so that another process may take the port in between.
//
// Address passes over ports on which a server listens at every address.
func Address(t testing.TB) netip.AddrPort {
	t.Helper()
	host := loopback(os.Getpid())
	for range ports {
		port := firstPort + (uint32(os.Getpid())*100+given.Add(1))%ports
		at := netip.AddrPortFrom(host, uint16(port))
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", at.String())
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		return at
	}
	t.Fatalf("all %d ports of %v are in use", ports, host)
	return netip.AddrPort{}
}

// loopback returns the address of a test process.
func loopback(pid int) netip.Addr {
	if runtime.GOOS != "linux" {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.AddrFrom4([4]byte{127, 64 + byte(pid>>16)&63, byte(pid >> 8), byte(pid)})
}
