package apply

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
)

// HeldError says that another rooftop tunes the server.
type HeldError struct {
	PID   int       // 0 unknown
	Since time.Time // zero unknown
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
	return who + " tunes this server: end it, or wait until it is done"
}

// lock keeps two tuners of one server apart. Both of its parts are the kernel's,
// which takes them back when the process ends, however it ends: the file lock holds
// within a state directory, the socket on the whole machine, also where containers
// of one network, another user or another XDG_STATE_HOME lead to other directories.
// Another machine has neither.
type lock struct {
	file    *os.File
	sockets []net.Listener // of each address of the server; none where the system has no such
}

// takeLock takes the lock of a server; the error is a *HeldError where somebody has
// it.
func takeLock(dir string, id Identity, now time.Time) (*lock, error) {
	path := filepath.Join(dir, lockName)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, &StateError{Dir: dir, Err: err}
	}
	if err := flock(file); err != nil {
		_ = file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, named(readShort(path))
		}
		return nil, &StateError{Dir: dir, Err: fmt.Errorf("lock: %w", err)}
	}
	card := fmt.Sprintf("%d %s\n", os.Getpid(), now.UTC().Format(time.RFC3339))
	sockets, err := listenAbstract(id)
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	l := &lock{file: file, sockets: sockets}
	// Who holds it is for people to read: the lock itself does not depend on it.
	if err := file.Truncate(0); err == nil {
		_, _ = file.WriteAt([]byte(card), 0)
	}
	for _, socket := range sockets {
		go answer(socket, card)
	}
	return l, nil
}

// A process that is just being started shares what is open with the one that starts
// it, for an instant: where that is killed, its locks linger for as long.
const (
	lingers    = time.Second
	lingerPoll = 20 * time.Millisecond
)

// flock locks a file. Where the one who is named in it no longer runs, the lock may
// linger.
func flock(file *os.File) error {
	for deadline := time.Now().Add(lingers); ; time.Sleep(lingerPoll) {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		pid := named(readShort(file.Name())).PID
		if pid > 0 && unix.Kill(pid, 0) == nil || time.Now().After(deadline) {
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

// answer tells whoever asks who holds the lock, until the socket is closed.
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

// named reads who holds a lock.
func named(card string) *HeldError {
	e := &HeldError{}
	var since string
	if _, err := fmt.Sscan(card, &e.PID, &since); err == nil {
		e.Since, _ = time.Parse(time.RFC3339, since)
	}
	return e
}

func readShort(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, 100)).ReadString('\n')
	return strings.TrimSpace(line)
}
