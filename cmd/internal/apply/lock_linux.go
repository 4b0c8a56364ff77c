package apply

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// askWithin bounds the question who holds a lock: a stopped process does not answer.
const askWithin = 500 * time.Millisecond

// listenAbstract takes the abstract socket of a server's address. Its name is the
// same for all users, directories and containers of one network namespace, and it
// is in no file system.
func listenAbstract(id Identity) (net.Listener, error) {
	addr := abstract(id)
	socket, err := net.ListenUnix("unix", addr)
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, ask(addr)
	}
	if err != nil {
		return nil, fmt.Errorf("lock of %s: %w", id.address(), err)
	}
	return socket, nil
}

func abstract(id Identity) *net.UnixAddr {
	sum := sha256.Sum256([]byte(id.address()))
	return &net.UnixAddr{Net: "unix", Name: "@rooftop/tune/" + hex.EncodeToString(sum[:16])}
}

// held says whether somebody tunes a server, without getting in the way of one who
// is about to.
func held(id Identity) bool {
	c, err := net.DialTimeout("unix", abstract(id).Name, askWithin)
	if err == nil {
		_ = c.Close()
	}
	return err == nil
}

// ask asks the holder of a socket who it is.
func ask(addr *net.UnixAddr) *HeldError {
	c, err := net.DialTimeout("unix", addr.Name, askWithin)
	if err != nil {
		return &HeldError{}
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(askWithin))
	line, _ := bufio.NewReader(io.LimitReader(c, 100)).ReadString('\n')
	return holder(line)
}
