package serverdir

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// askWithin limits the request for a lock's holder, because a stopped process does not
// answer.
const askWithin = 500 * time.Millisecond

// listenAbstract opens the abstract sockets of a server's places. Their names are the
// same for all users, directories and containers of one network namespace, and are in no
// file system. Every process opens them in the same order. The error is a *HeldError if
// another process has one.
func listenAbstract(places []string) ([]net.Listener, error) {
	var sockets []net.Listener
	for _, place := range places {
		socket, err := listenAt(place)
		if err != nil {
			for _, taken := range sockets {
				_ = taken.Close()
			}
			return nil, err
		}
		sockets = append(sockets, socket)
	}
	return sockets, nil
}

func listenAt(place string) (net.Listener, error) {
	addr := abstract(place)
	for deadline := time.Now().Add(lingerWithin); ; time.Sleep(lingerPoll) {
		socket, err := net.ListenUnix("unix", addr)
		switch {
		case err == nil:
			return socket, nil
		case !errors.Is(err, unix.EADDRINUSE):
			return nil, fmt.Errorf("lock of %s: %w", place, err)
		}
		holder, there := askHolder(addr)
		if there && holder.PID > 0 || time.Now().After(deadline) {
			return nil, holder
		}
	}
}

func abstract(place string) *net.UnixAddr {
	sum := sha256.Sum256([]byte(place))
	return &net.UnixAddr{Net: "unix", Name: "@rooftop/tune/" + hex.EncodeToString(sum[:16])}
}

// Held reports whether another process tunes a server. It does not take the lock, so it does
// not disturb one that is about to.
func Held(id Identity) bool {
	return slices.ContainsFunc(id.places(), func(place string) bool { return heldAt(abstract(place)) })
}

func heldAt(addr *net.UnixAddr) bool {
	for deadline := time.Now().Add(lingerWithin); ; time.Sleep(lingerPoll) {
		holder, there := askHolder(addr)
		if !there {
			return false
		}
		if holder.PID > 0 || time.Now().After(deadline) {
			return true
		}
	}
}

// askHolder requests the identity of a socket's holder; there is false if no process has
// the socket. A holder that does not answer was stopped, or was killed while it started a
// child.
func askHolder(addr *net.UnixAddr) (holder *HeldError, there bool) {
	dialer := net.Dialer{Timeout: askWithin}
	c, err := dialer.DialContext(context.Background(), "unix", addr.Name)
	if err != nil {
		return &HeldError{}, errors.Is(err, unix.EAGAIN) // the listen queue is full
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(askWithin))
	line, _ := bufio.NewReader(io.LimitReader(c, 100)).ReadString('\n')
	return parseHolder(line), true
}
