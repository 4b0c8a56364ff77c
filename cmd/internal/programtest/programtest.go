// Package programtest gives tests what the programs that they start need: a file that can be executed, and an address
// for a server that needs one to start, or that listens again at the same address. A server inside the test listens on
// port 0 instead and keeps its listener.
package programtest

import (
	"errors"
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
		if err := free(at); errors.Is(err, syscall.EADDRINUSE) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		return at
	}
	t.Fatalf("all %d ports of %v are in use", ports, host)
	return netip.AddrPort{}
}

// free returns an error if a server listens at an address. It does not listen itself: a program that is being
// started meanwhile has a copy of each socket until it is executed, and would be the server that listens there.
func free(at netip.AddrPort) error {
	syscall.ForkLock.RLock()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(socket)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return err
	}
	defer syscall.Close(socket)
	if err := syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return err
	}
	return syscall.Bind(socket, &syscall.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()})
}

// Write writes an executable file. A program that another goroutine starts meanwhile would have a copy of the open file
// until it is executed, and Linux refuses to execute a file that is open for writing (execve(2), ETXTBSY): no program is
// started while the file is open.
func Write(path string, content []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, content, 0o755)
}

// loopback returns the address of a test process.
func loopback(pid int) netip.Addr {
	if runtime.GOOS != "linux" {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.AddrFrom4([4]byte{127, 64 + byte(pid>>16)&63, byte(pid >> 8), byte(pid)})
}
