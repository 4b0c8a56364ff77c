package programtest

import (
	"net"
	"net/netip"
	"testing"
)

func TestAddress(t *testing.T) {
	var everywhere net.Listener
	var err error
	for range 100 { // another process may listen on a port at every address
		everywhere, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", netip.AddrPortFrom(netip.IPv4Unspecified(), Address(t).Port()+1).String())
		if err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer everywhere.Close()
	seen := map[netip.AddrPort]bool{}
	for range 10 {
		at := Address(t)
		if seen[at] || !netip.MustParsePrefix("127.64.0.0/10").Contains(at.Addr()) || at.Port() < firstPort || at.Port() >= firstPort+ports {
			t.Errorf("given %v after %v", at, seen)
		}
		seen[at] = true
		if l, err := net.Listen("tcp", at.String()); err != nil {
			t.Error(err)
		} else {
			defer l.Close()
		}
	}
}

func TestEachProcessHasItsLoopback(t *testing.T) {
	seen := map[netip.Addr]int{}
	for _, pid := range []int{1, 2, 255, 256, 65535, 65536, 1<<22 - 1} {
		at := loopback(pid)
		if other, ok := seen[at]; ok || !at.IsLoopback() {
			t.Errorf("processes %d and %d have %v", pid, other, at)
		}
		seen[at] = pid
	}
}
