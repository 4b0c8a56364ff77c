package kube

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/util/httpstream"
)

// stopped is a connection to an API server that is stopped.
type stopped struct {
	httpstream.Connection
	release chan struct{}
}

func (s stopped) Close() error {
	<-s.release
	return nil
}

func (s stopped) Dial(...string) (httpstream.Connection, string, error) {
	<-s.release
	return s, "", nil
}

// A connection whose other end is stopped neither holds up the end of a tunnel, nor is it waited for once the
// tunnel was closed.
func TestTheAPIServerIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stopped{release: make(chan struct{})}
		shut(s)
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the tunnel was closed")
		time.AfterFunc(time.Second, func() { cancel(why) })
		if _, _, err := dialed(ctx, s); !errors.Is(err, why) {
			t.Errorf("closed: %v", err)
		}
		if _, _, err := dialed(t.Context(), s); err == nil || err.Error() != "no answer within 20s" {
			t.Errorf("silent: %v", err)
		}
		close(s.release)
	})
}

// A lease with a duration of years is not waited for.
func TestALeaseEnds(t *testing.T) {
	s := new(leased)
	if s.Spec.Seconds = 1 << 30; s.lasts() != leaseMost {
		t.Errorf("it lasts %v", s.lasts())
	}
	if s.Spec.Seconds = 60; s.lasts() != leaseFor {
		t.Errorf("it lasts %v", s.lasts())
	}
}
