package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// tap is a reader that stalls while it is closed, and has gone once err is set.
type tap struct {
	mu   sync.Mutex
	open sync.Cond
	shut bool
	err  error
	got  bytes.Buffer
}

func newTap(shut bool) *tap {
	p := &tap{shut: shut}
	p.open.L = &p.mu
	return p
}

func (p *tap) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.shut {
		p.open.Wait()
	}
	if p.err != nil {
		return 0, p.err
	}
	return p.got.Write(b)
}

// turn opens or shuts the tap, or ends it.
func (p *tap) turn(shut bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut, p.err = shut, err
	p.open.Broadcast()
}

func TestAWriteIsDoneWhenItReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTap(false)
		o := NewOutlet(p)
		began := time.Now()
		for range 100 {
			before := p.got.Len()
			if n, err := io.WriteString(o, "a line\n"); n != 7 || err != nil || p.got.Len() != before+7 {
				t.Fatalf("%d bytes, %v; %d arrived", n, err, p.got.Len()-before)
			}
		}
		if time.Since(began) != 0 {
			t.Errorf("took %v", time.Since(began))
		}
		p.turn(false, syscall.EPIPE)
		if _, err := io.WriteString(o, "x"); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("the reader has gone, got %v", err)
		}
		if err := o.Drain(t.Context(), nil); err != nil {
			t.Errorf("the error was returned before, got %v", err)
		}
	})
}

func TestAStalledReaderHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTap(true)
		o := NewOutlet(p)
		began := time.Now()
		var want strings.Builder
		for i := range 1000 {
			line := strings.Repeat("x", i) + "\n"
			want.WriteString(line)
			if _, err := io.WriteString(o, line); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != stallAfter {
			t.Errorf("1000 writes took %v, want %v", took, stallAfter)
		}
		time.AfterFunc(time.Hour, func() { p.turn(false, nil) })
		left := 0
		if err := o.Drain(t.Context(), func(n int) { left = n }); err != nil || p.got.String() != want.String() {
			t.Errorf("%v; %d bytes arrived, want %d in order", err, p.got.Len(), want.Len())
		}
		if took := time.Since(began); took != stallAfter+time.Hour || left != want.Len() {
			t.Errorf("drained after %v; %d bytes waited, want %d", took, left, want.Len())
		}
		if _, err := io.WriteString(o, "last"); err != nil || !strings.HasSuffix(p.got.String(), "last") {
			t.Errorf("the reader reads again, and a write is not done when it returns: %v", err)
		}
	})
}

func TestASignalEndsTheWaitForAReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTap(true)
		defer p.turn(false, nil)
		o := NewOutlet(p)
		_, _ = io.WriteString(o, "never read")
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		time.AfterFunc(time.Minute, cancel)
		if err := o.Drain(ctx, nil); err == nil || !strings.Contains(err.Error(), "the last 10 bytes") {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != time.Minute+drainWithin {
			t.Errorf("ended after %v", took)
		}
		p.turn(false, nil)
		synctest.Wait()
	})
}

func TestAReaderThatGoesWhileItStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTap(true)
		o := NewOutlet(p)
		_, _ = io.WriteString(o, "never read")
		time.AfterFunc(time.Minute, func() { p.turn(false, syscall.EPIPE) })
		if err := o.Drain(t.Context(), nil); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("no write returned the error, got %v", err)
		}
	})
}

// Output for which a reader that stalls leaves no room is refused as a whole, with an error that ends a run.
func TestUnreadOutputIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTap(true)
		o := NewOutlet(p)
		o.most = 1000
		large := make([]byte, o.most)
		if _, err := o.Write(large); err != nil {
			t.Fatal(err)
		}
		time.Sleep(unreadFor)
		if _, err := io.WriteString(o, "refused"); err == nil || !strings.Contains(err.Error(), "64 MiB wait for a reader") {
			t.Errorf("got %v", err)
		}
		p.turn(false, nil)
		if err := o.Drain(t.Context(), nil); err != nil || p.got.Len() != len(large) {
			t.Errorf("%v: %d bytes arrived", err, p.got.Len())
		}
		if _, err := io.WriteString(o, "refused"); err == nil {
			t.Error("output continues after a gap")
		}
	})
}

// A document of any size reaches a reader that reads.
func TestALargeDocumentIsNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTap(false)
		o := NewOutlet(p)
		o.most = 1000
		large := make([]byte, 3*drainChunk)
		for range 2 {
			if _, err := o.Write(large); err != nil {
				t.Error(err)
			}
		}
		if p.got.Len() != 2*len(large) {
			t.Errorf("%d bytes arrived", p.got.Len())
		}
	})
}

func TestTheFileOfAnOutlet(t *testing.T) {
	if f, ok := File(NewOutlet(os.Stdout)); !ok || f != os.Stdout {
		t.Error("an outlet hides its file")
	}
	if _, ok := File(NewOutlet(io.Discard)); ok {
		t.Error("there is no file")
	}
}
