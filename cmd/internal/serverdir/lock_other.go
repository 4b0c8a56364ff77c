//go:build !linux

package serverdir

import "net"

// listenAbstract returns no sockets: abstract sockets exist only on Linux, so only the file
// lock applies.
func listenAbstract([]string, *int) ([]net.Listener, error) { return nil, nil }

// Held always reports false: without abstract sockets the holder is unknown.
func Held(Identity) bool { return false }
