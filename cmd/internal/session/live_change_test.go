package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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
