package serverdir

import (
	"errors"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
)

// as opens a socket of a server's lock as a user does, and nobody answers at it.
func as(t *testing.T, uid int, name string) net.Listener {
	t.Helper()
	var socket net.Listener
	must(t, launcher.Owner{UID: uid, GID: uid}.Do(func() (err error) {
		socket, err = net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: name})
		return err
	}))
	t.Cleanup(func() { _ = socket.Close() })
	return socket
}

// TestAStrangerHoldsNoLock: who may not tune a server keeps nobody from it, and hides nobody who does.
func TestAStrangerHoldsNoLock(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT CHECKED: sockets of other users; only root opens them")
	}
	const stranger, user = 65534, 12345
	id, owner := server(t), user
	id.Owner = &owner
	name := abstract(id.places()[0])
	squat := as(t, stranger, name)
	go answer(squat, "1 2026-11-29T00:00:00Z\n")
	as(t, stranger, name+"/0")
	as(t, stranger, name+"/ZZZZ")
	if Held(id) {
		t.Error("a stranger tunes the server")
	}
	first := open(t, t.TempDir(), id)
	var held *HeldError
	meets := func(when string) {
		t.Helper()
		if s, err := OpenStore(t.TempDir(), id, ""); !errors.As(err, &held) || held.PID != os.Getpid() || !Held(id) {
			t.Errorf("%s: got %v, want that this process holds it", when, err)
			if s != nil {
				_ = s.Close()
			}
		}
	}
	meets("beside a stranger")
	must(t, squat.Close())
	meets("where a stranger was")
	must(t, first.Close())
	if Held(id) {
		t.Error("it is held after it was closed")
	}
	id.Owner = nil // a program of anybody's may restart it
	as(t, stranger, name)
	if _, err := OpenStore(t.TempDir(), id, ""); !errors.As(err, &held) {
		t.Errorf("got %v, want that anybody counts", err)
	}
}

// TestTheOwnersLockCountsForRoot, also if it is stopped and strangers fill its queue.
func TestTheOwnersLockCountsForRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT CHECKED: sockets of other users; only root opens them")
	}
	const user = 12345
	id, owner := server(t), user
	id.Owner = &owner
	name := abstract(id.places()[0])
	as(t, 65534, name)
	socket := as(t, user, name+"/own")
	raw, err := socket.(*net.UnixListener).SyscallConn()
	must(t, err)
	must(t, raw.Control(func(fd uintptr) { must(t, unix.Listen(int(fd), 1)) }))
	for full := false; !full; {
		c, err := net.Dial("unix", name+"/own")
		if full = errors.Is(err, unix.EAGAIN); full {
			break
		}
		must(t, err)
		defer c.Close()
	}
	var held *HeldError
	if _, err := OpenStore(t.TempDir(), id, ""); !errors.As(err, &held) {
		t.Errorf("got %v, want that the owner holds it", err)
	}
}
