//go:build !linux

package apply

import "net"

// listenAbstract has no sockets without a file here: the file lock alone holds.
func listenAbstract(Identity) ([]net.Listener, error) { return nil, nil }

// held does not know it here.
func held(Identity) bool { return false }
