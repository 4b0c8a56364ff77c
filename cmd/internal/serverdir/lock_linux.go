package serverdir

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// askWithin limits the request for a lock's holder, because a stopped process does not
// answer.
const askWithin = 500 * time.Millisecond

// listenAbstract opens the abstract sockets of a server's places. Their names begin the same
// for all users, directories and containers of one network namespace, and are in no
// file system. Every process opens them in the same order. The error is a *HeldError if
// another process that counts for the owner has one.
func listenAbstract(places []string, owner *int) ([]net.Listener, error) {
	var sockets []net.Listener
	for _, place := range places {
		socket, err := listenAt(place, owner)
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

// listenAt opens the socket of a place. If someone who does not count has its name, it takes a
// longer one. It looks for others afterwards too: of two processes, the later one sees the other.
func listenAt(place string, owner *int) (net.Listener, error) {
	name := abstract(place)
	for deadline := time.Now().Add(lingerWithin); ; time.Sleep(lingerPoll) {
		holder, held := holderOf(name, "", owner)
		if !held {
			socket, own, err := listen(name, owner)
			if err != nil {
				return nil, fmt.Errorf("lock of %s: %w", place, err)
			}
			if socket != nil {
				if holder, held = holderOf(name, own, owner); !held {
					return socket, nil
				}
				_ = socket.Close()
			}
		}
		if held && holder.PID > 0 || time.Now().After(deadline) {
			return nil, holder
		}
	}
}

// listen opens a socket of that name, or of a longer one; nil if someone who counts came first.
func listen(name string, owner *int) (socket net.Listener, own string, err error) {
	for _, own = range [...]string{name, name + "/" + rand.Text()} {
		socket, err = net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: own})
		if err == nil || !errors.Is(err, unix.EADDRINUSE) {
			return socket, own, err
		}
		if _, held := holderOf(name, "", owner); held {
			break
		}
	}
	return nil, "", nil
}

// abstract returns the first name of a place's socket.
func abstract(place string) string {
	sum := sha256.Sum256([]byte(place))
	return "@rooftop/tune/" + hex.EncodeToString(sum[:16])
}

// Held reports whether another process tunes a server. It does not take the lock, so it does
// not disturb one that is about to.
func Held(id Identity) bool {
	return slices.ContainsFunc(id.places(), func(place string) bool { return heldAt(abstract(place), id.Owner) })
}

func heldAt(name string, owner *int) bool {
	for deadline := time.Now().Add(lingerWithin); ; time.Sleep(lingerPoll) {
		holder, held := holderOf(name, "", owner)
		if !held {
			return false
		}
		if holder.PID > 0 || time.Now().After(deadline) {
			return true
		}
	}
}

// holderOf returns who holds a place, besides the socket with the name own. Everyone counts if the owner is
// nil or the kernel does not say whose a socket is; otherwise root, this process's user and the owner.
func holderOf(name, own string, owner *int) (holder *HeldError, held bool) {
	sockets, err := listening(name)
	if err != nil {
		sockets = map[string]int{name: -1}
	}
	counts := []int{-1, 0, os.Geteuid()}
	if owner != nil {
		counts = append(counts, *owner)
	}
	holder = &HeldError{}
	for one, uid := range sockets {
		if one == own || owner != nil && !slices.Contains(counts, uid) {
			continue
		}
		if asked, there := askHolder(one); there {
			holder, held = asked, true
		}
	}
	return holder, held
}

// listening returns the sockets of a place by name, with their users, -1 if unknown. A connection would not do:
// a stranger can fill the queue of any socket.
func listening(place string) (map[string]int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	within := unix.NsecToTimeval(int64(lingerWithin))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &within); err != nil {
		return nil, err
	}
	// struct unix_diag_req and its answers, linux/unix_diag.h
	const (
		listenState, showNameAndUID    = 1 << 10, 1<<0 | 1<<6
		answerBytes, nameAttr, uidAttr = 16, 0, 7
	)
	ask := new(bytes.Buffer)
	if err := binary.Write(ask, binary.NativeEndian, struct {
		unix.NlMsghdr
		Family, Protocol    uint8
		_                   uint16
		States, Inode, Show uint32
		Cookie              [2]uint32
	}{
		NlMsghdr: unix.NlMsghdr{Len: unix.SizeofNlMsghdr + 24, Type: unix.SOCK_DIAG_BY_FAMILY, Flags: unix.NLM_F_REQUEST | unix.NLM_F_DUMP},
		Family:   unix.AF_UNIX, States: listenState, Show: showNameAndUID,
	}); err != nil {
		return nil, err
	}
	if err := unix.Sendto(fd, ask.Bytes(), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	found, buffer := map[string]int{}, make([]byte, 1<<16)
	for {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if err != nil {
			return nil, err
		}
		list, err := syscall.ParseNetlinkMessage(buffer[:n])
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			if m.Header.Type == unix.NLMSG_DONE {
				return found, nil
			} else if m.Header.Type == unix.NLMSG_ERROR || len(m.Data) < answerBytes {
				return nil, unix.EPROTO
			}
			name, uid := "", -1
			for rest := m.Data[answerBytes:]; len(rest) >= unix.SizeofNlAttr; {
				size := int(binary.NativeEndian.Uint16(rest))
				if size < unix.SizeofNlAttr || size > len(rest) {
					return nil, unix.EPROTO
				}
				switch value := rest[unix.SizeofNlAttr:size]; binary.NativeEndian.Uint16(rest[2:]) {
				case nameAttr:
					name = string(value)
				case uidAttr:
					uid = int(binary.NativeEndian.Uint32(value))
				}
				rest = rest[min(len(rest), (size+3)&^3):]
			}
			if at, abstract := strings.CutPrefix(name, "\x00"); abstract && ("@"+at == place || strings.HasPrefix("@"+at, place+"/")) {
				found["@"+at] = uid
			}
		}
	}
}

// askHolder requests the identity of a socket's holder; there is false if no process has
// the socket. A holder that does not answer was stopped, or was killed while it started a
// child.
func askHolder(name string) (holder *HeldError, there bool) {
	dialer := net.Dialer{Timeout: askWithin}
	c, err := dialer.DialContext(context.Background(), "unix", name)
	if err != nil {
		return &HeldError{}, errors.Is(err, unix.EAGAIN) // the listen queue is full
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(askWithin))
	line, _ := bufio.NewReader(io.LimitReader(c, 100)).ReadString('\n')
	return parseHolder(line), true
}
