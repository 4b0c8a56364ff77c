package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// applies returns actions that request a change as soon as a server is attached.
func applies(in loop.Input) []loop.Action {
	if _, ok := in.(loop.Attached); ok {
		return []loop.Action{loop.Apply{Changes: []engine.Change{{Flag: "--max-num-seqs", From: "4", To: "32"}}}}
	}
	return attaches(in)
}

func TestLiveQuitDuringAChange(t *testing.T) {
	broken := errors.New("the server refused to start")
	for _, c := range []struct {
		name   string
		takes  time.Duration
		revert bool
		back   time.Duration // putting the server back after it was canceled
		fails  error
		again  bool // a second quit
		want   string
		within time.Duration
	}{
		{"the change is canceled and put back", time.Hour, false, 20 * time.Second, nil, false, "context canceled", 21 * time.Second},
		{"a revert is finished first", 20 * time.Second, true, 0, nil, false, "", 21 * time.Second},
		{"its failure is reported", 20 * time.Second, true, 0, broken, false, "the server refused to start", 21 * time.Second},
		{"it is cancelled after the grace", time.Hour, true, 0, nil, false, "cancelled after 1m0s", 62 * time.Second},
		{"a second quit abandons nothing", 20 * time.Second, true, 0, nil, true, "", 21 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				scripted := &script{answer: func(in loop.Input) []loop.Action {
					list := applies(in)
					for i := range list {
						if a, ok := list[i].(loop.Apply); ok {
							a.Revert = c.revert
							list[i] = a
						}
					}
					return list
				}}
				var cut atomic.Bool
				s := &Server{Pages: newServer(), Apply: func(ctx context.Context, _ loop.Apply) loop.Applied {
					err := c.fails
					if !sleep(ctx, c.takes) {
						cut.Store(true)
						err = context.Cause(ctx)
						time.Sleep(c.back)
					}
					if err != nil {
						return loop.Applied{Err: err.Error()}
					}
					return loop.Applied{}
				}}
				began := time.Now()
				err := live(t, scripted, LivePlan{Attach: finds(s)}, time.Second, func(l *Live) {
					if c.again {
						go func() {
							time.Sleep(3 * time.Second)
							l.Do(loop.CommandQuit)
						}()
					}
				})
				if got := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(got, c.want) {
					t.Errorf("error %q, want %q", got, c.want)
				}
				if took := time.Since(began); took > c.within || cut.Load() != (c.takes == time.Hour) {
					t.Errorf("ended after %v, change cut off %v", took, cut.Load())
				}
			})
		})
	}
}

func TestLiveAChangeWithoutHands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scripted := &script{answer: applies}
		s := &Server{Pages: newServer(), CannotApply: "it runs in a pod"}
		must(t, live(t, scripted, LivePlan{Attach: finds(s)}, 5*time.Second, nil))
		if want := []string{"Begin", "Attached", "Applied: it runs in a pod", "quit"}; !slices.Equal(scripted.events(), want) {
			t.Errorf("heard %q, want %q", scripted.events(), want)
		}
	})
}

// keyed requests each page with a key, from a listener that notes whether it came.
type keyed struct {
	*server
	client *collect.Client
	keys   atomic.Int32 // requests with the key
}

func newKeyed(t *testing.T) *keyed {
	t.Helper()
	k := &keyed{server: newServer()}
	target, err := collect.ParseTarget("http://127.0.0.1:8000")
	must(t, err)
	token, err := collect.NewSecret("the-key-of-the-server")
	must(t, err)
	k.client, err = collect.NewClient(collect.Options{Target: target, Token: token, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			if r, err := http.ReadRequest(bufio.NewReader(theirs)); err == nil && r.Header.Get("Authorization") != "" {
				k.keys.Add(1)
			}
			_, _ = theirs.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"))
		}()
		return ours, nil
	}})
	must(t, err)
	return k
}

func (k *keyed) Page(ctx context.Context, buf []byte) ([]byte, error) {
	if _, err := k.client.Get(ctx, "/metrics", "*/*", nil); err != nil {
		return nil, err
	}
	return k.server.Page(ctx, buf)
}

// TestLiveARestartGetsNoKey: while rooftop restarts a server, and after it failed to, another process may answer.
func TestLiveARestartGetsNoKey(t *testing.T) {
	for _, failed := range []loop.Applied{{}, {Err: "it did not start", Back: true}, {Err: "its port is taken"}} {
		synctest.Test(t, func(t *testing.T) {
			pages := newKeyed(t)
			defer pages.client.Close()
			var before, during int32
			s := &Server{Pages: pages, Apply: func(context.Context, loop.Apply) loop.Applied {
				time.Sleep(time.Second) // a request may be under way
				before = pages.keys.Load()
				time.Sleep(10 * time.Second)
				during = pages.keys.Load() - before
				return failed
			}}
			must(t, live(t, &script{answer: applies}, LivePlan{Attach: finds(s)}, 30*time.Second, nil))
			after, known := pages.keys.Load()-before-during, failed.Err == "" || failed.Back
			if during > 0 || (after > 0) != known || pages.asked.Load() < 100 {
				t.Errorf("%+v: %d requests with the key before, %d during, %d after", failed, before, during, after)
			}
		})
	}
}
