// Package porttest finds ports for servers that tests start as processes of their own.
package porttest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Free returns a port of this machine on which nobody listens. It is between 20000 and
// 29999, below those that Linux gives to whoever asks for any port or opens a connection
// (ip_local_port_range, by default from 32768): such a port could be given away before the
// test's server listens on it.
func Free(t testing.TB) int {
	t.Helper()
	var err error
	for range 100 {
		port := 20000 + rand.IntN(10000)
		var l net.Listener
		if l, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatalf("no port is free between 20000 and 29999: %v", err)
	return 0
}
