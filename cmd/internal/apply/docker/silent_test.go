package docker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A Docker that is stopped accepts connections and answers nothing.
func TestDockerIsSilent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "docker.sock")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	must(t, err)
	defer listener.Close()
	usual := answerWithin
	t.Cleanup(func() { answerWithin = usual })
	answerWithin = 100 * time.Millisecond
	d := newDaemon("unix://" + path)
	if _, err := d.call(t.Context(), "GET", "/containers/vllm/json", nil, nil); err == nil || !strings.HasPrefix(err.Error(), "no answer from Docker at unix://") {
		t.Errorf("a question: %v", err)
	}
	d.version = "/v1.41"
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the run was ended")
	time.AfterFunc(10*time.Millisecond, func() { cancel(why) })
	if _, err := d.call(ctx, "POST", "/containers/vllm/stop", nil, nil); !errors.Is(err, why) {
		t.Errorf("an action: %v", err)
	}
	if whole, cancel := bounded(ctx); whole.Err() != nil {
		t.Error("a change is given up with its run")
	} else if _, limited := whole.Deadline(); !limited {
		t.Error("a change has no limit")
	} else {
		cancel()
	}
}

// A Compose that does not end, and leaves processes that keep its output open, is ended.
func TestComposeIsSilent(t *testing.T) {
	usual := endWithin
	t.Cleanup(func() { endWithin = usual })
	endWithin = 100 * time.Millisecond
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("it did not end")
	time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
	_, err := run(ctx, nil, []string{"sh", "-c", "trap '' TERM; (trap '' TERM; sleep 600) & while :; do sleep 600; done"}, nil)
	if !errors.Is(err, why) || !strings.HasPrefix(err.Error(), "sh -c: ") {
		t.Errorf("%v", err)
	}
	// One that has ended and left a process with its output.
	_, err = run(t.Context(), nil, []string{"sh", "-c", "sleep 600 & echo $! >&2; exit 3"}, nil)
	left := 0
	if _, scan := fmt.Sscanf(fmt.Sprint(err), "sh -c: %d (exit status 3)", &left); scan != nil {
		t.Fatalf("%v", err)
	}
	if err := syscall.Kill(left, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}
