package apply

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

// askWithin bounds the question who holds a lock: a stopped process does not answer.
const askWithin = 500 * time.Millisecond

// listenAbstract takes the abstract sockets of a server's addresses. Their names are
// the same for all users, directories and containers of one network namespace, and
// they are in no file system. All take them in the same order.
func listenAbstract(id Identity) ([]net.Listener, error) {
	var sockets []net.Listener
	for _, place := range id.places() {
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
	for deadline := time.Now().Add(lingers); ; time.Sleep(lingerPoll) {
		socket, err := net.ListenUnix("unix", addr)
		switch {
		case err == nil:
			return socket, nil
		case !errors.Is(err, unix.EADDRINUSE):
			return nil, fmt.Errorf("lock of %s: %w", place, err)
		}
		if holder, there := ask(addr); there && (holder.PID > 0 || time.Now().After(deadline)) {
			return nil, holder
		}
	}
}

func abstract(place string) *net.UnixAddr {
	sum := sha256.Sum256([]byte(place))
	return &net.UnixAddr{Net: "unix", Name: "@rooftop/tune/" + hex.EncodeToString(sum[:16])}
}

// held says whether somebody tunes a server, without getting in the way of one who
// is about to.
func held(id Identity) bool {
	return slices.ContainsFunc(id.places(), func(place string) bool { return heldAt(abstract(place)) })
}

func heldAt(addr *net.UnixAddr) bool {
	for deadline := time.Now().Add(lingers); ; time.Sleep(lingerPoll) {
		holder, there := ask(addr)
		if !there {
			return false
		}
		if holder.PID > 0 || time.Now().After(deadline) {
			return true
		}
	}
}

// ask asks the holder of a socket who it is. A socket that is there and does not
// answer is of a process that was stopped, or was killed as it started another.
func ask(addr *net.UnixAddr) (holder *HeldError, there bool) {
	dialer := net.Dialer{Timeout: askWithin}
	c, err := dialer.DialContext(context.Background(), "unix", addr.Name)
	if err != nil {
		return &HeldError{}, errors.Is(err, unix.EAGAIN) // more ask than are heard
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(askWithin))
	line, _ := bufio.NewReader(io.LimitReader(c, 100)).ReadString('\n')
	return named(line), true
}
