package serverdir

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
)

// HeldError means that another rooftop is tuning the server.
type HeldError struct {
	PID   int       // 0 if unknown
	Since time.Time // zero if unknown
}

func (e *HeldError) Error() string {
	who := "another rooftop"
	if e.PID > 0 {
		who += fmt.Sprintf(" (process %d", e.PID)
		if !e.Since.IsZero() {
			who += ", since " + e.Since.Local().Format("2006-01-02 15:04:05")
		}
		who += ")"
	}
	return who + " is tuning this server: stop it, or wait until it is done"
}

// lock excludes a second tuner of a server. The kernel releases both parts when the process
// ends in any way. The file lock covers a state directory. The sockets cover the whole
// machine, also other users, other XDG_STATE_HOMEs and containers in the same network
// namespace. Neither covers other machines.
type lock struct {
	file    *os.File
	card    string         // names this process
	owner   *int           // of the server, as in Identity
	sockets []net.Listener // one for each place of the server; none except on Linux
}

// takeLock takes the lock of a server. The error is a *HeldError if another process has the
// lock, else a *StateError or that of a socket.
func takeLock(dir string, id Identity, now time.Time) (*lock, error) {
	path := filepath.Join(dir, lockName)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, &StateError{Dir: dir, Err: err}
	}
	if err := flock(file); err != nil {
		_ = file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, parseHolder(readShort(path))
		}
		return nil, &StateError{Dir: dir, Err: fmt.Errorf("lock: %w", err)}
	}
	l := &lock{file: file, owner: id.Owner, card: fmt.Sprintf("%d %s\n", os.Getpid(), now.UTC().Format(time.RFC3339))}
	if err := l.take(id.places()); err != nil {
		_ = file.Close()
		return nil, err
	}
	// The text is only for messages; the lock does not depend on it.
	if err := file.Truncate(0); err == nil {
		_, _ = file.WriteAt([]byte(l.card), 0)
	}
	return l, nil
}

// take takes the lock of further places, all or none.
func (l *lock) take(places []string) error {
	sockets, err := listenAbstract(places, l.owner)
	if err != nil {
		return err
	}
	for _, socket := range sockets {
		go answer(socket, l.card)
	}
	l.sockets = append(l.sockets, sockets...)
	return nil
}

// Retries for a lock that lingerWithin: a child that is being started briefly shares the open
// files of its parent, and keeps the lock that long if the parent is killed.
const (
	lingerWithin = time.Second
	lingerPoll   = 20 * time.Millisecond
)

// flock locks a file. It retries for lingerWithin if the process named in the file no
// longer runs, or is this one: a lock that this process released is kept as long by a child
// that it is starting.
func flock(file *os.File) error {
	for deadline := time.Now().Add(lingerWithin); ; time.Sleep(lingerPoll) {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		pid := parseHolder(readShort(file.Name())).PID
		if pid > 0 && pid != os.Getpid() && unix.Kill(pid, 0) == nil || time.Now().After(deadline) {
			return err
		}
	}
}

func (l *lock) release() error {
	var errs []error
	for _, socket := range l.sockets {
		errs = append(errs, socket.Close())
	}
	return errors.Join(append(errs, l.file.Close())...)
}

// answer sends the card of the lock's holder to each connection until the socket is closed.
func answer(socket net.Listener, card string) {
	for {
		c, err := socket.Accept()
		if err != nil {
			return
		}
		_ = c.SetDeadline(time.Now().Add(time.Second))
		_, _ = io.WriteString(c, card)
		_ = c.Close()
	}
}

// parseHolder parses the card of a lock's holder. The result is zero if it is invalid.
func parseHolder(card string) *HeldError {
	e := &HeldError{}
	var since string
	if _, err := fmt.Sscan(card, &e.PID, &since); err == nil {
		e.Since, _ = time.Parse(time.RFC3339, since)
	}
	return e
}

func readShort(path string) string {
	f, err := launcher.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, 100)).ReadString('\n')
	return strings.TrimSpace(line)
}
