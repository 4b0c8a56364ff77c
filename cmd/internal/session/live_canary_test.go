package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rooftop-dev/rooftop/engine/loop"
)

// besides is a canary beside two servers.
type besides struct {
	ended, stuck error
	removed      atomic.Int32
}

func (b *besides) Name() string { return "pod a" }

func (b *besides) Sources() []CanarySource {
	return []CanarySource{{Pages: newServer()}, {Pages: newServer()}, {Pages: newServer()}}
}

func (b *besides) Ended(context.Context) error { return b.ended }

func (b *besides) Remove(context.Context) error {
	b.removed.Add(1)
	time.Sleep(2 * time.Second)
	return b.stuck
}

func TestLiveACanary(t *testing.T) {
	gone := errors.New("pod a was deleted")
	for _, c := range []struct {
		name   string
		fails  error // to start
		canary *besides
		after  time.Duration // when the loop ends it, 0 never
		want   []string
		err    string
	}{
		{"is removed when the loop says so", nil, &besides{}, 10 * time.Second, []string{"CanaryStarted", "CanaryEnded: "}, ""},
		{"ends by itself", nil, &besides{ended: gone}, 0, []string{"CanaryStarted", "CanaryEnded: pod a was deleted"}, ""},
		{"does not start", errors.New("no room"), &besides{}, 0, []string{"CanaryEnded: no room"}, ""},
		{"is removed when the run ends", nil, &besides{}, 0, []string{"CanaryStarted"}, ""},
		{"is left", nil, &besides{stuck: errors.New("forbidden")}, 0, []string{"CanaryStarted"}, "the canary is left: forbidden; 'rooftop recover' removes it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				readings := map[int]int{}
				var started time.Time
				scripted := &script{answer: func(in loop.Input) []loop.Action {
					switch in := in.(type) {
					case loop.Attached:
						return []loop.Action{loop.StartCanary{}}
					case loop.CanaryStarted:
						started = time.Now()
					case loop.CanarySampled:
						if in.Sample.Page != nil {
							readings[in.Server]++
						}
						if c.after > 0 && time.Since(started) >= c.after {
							return []loop.Action{loop.EndCanary{}}
						}
					}
					return attaches(in)
				}}
				s := &Server{Pages: newServer(), Apply: func(context.Context, loop.Apply) loop.Applied { return loop.Applied{} }, Canary: func(context.Context, loop.StartCanary) (Canary, error) {
					if c.fails != nil {
						return nil, c.fails
					}
					return c.canary, nil
				}}
				var file bytes.Buffer
				rec := NewRecorder(&file)
				err := live(t, scripted, LivePlan{Attach: finds(s), Record: rec}, 20*time.Second, nil)
				if got := fmt.Sprint(err); c.err == "" && err != nil || !strings.Contains(got, c.err) {
					t.Errorf("error %q, want %q", got, c.err)
				}
				got := slices.DeleteFunc(scripted.events(), func(w string) bool { return w == "Begin" || w == "Attached" || w == "quit" })
				if !slices.Equal(got, c.want) {
					t.Errorf("heard %q, want %q", got, c.want)
				}
				replayed := replays(t, rec, &file)
				if !slices.Equal(replayed.events(), scripted.events()) || len(replayed.inputs) != len(scripted.inputs) {
					t.Errorf("replayed %q with %d inputs, recorded %q with %d", replayed.events(), len(replayed.inputs), scripted.events(), len(scripted.inputs))
				}
				if n := c.canary.removed.Load(); (n == 0) != (c.fails != nil) {
					t.Errorf("removed %d times", n)
				}
				if c.after > 0 && (len(readings) != 3 || readings[0] < 18 || readings[0] > 22) {
					t.Errorf("readings by server in %v: %v", c.after, readings)
				}
			})
		})
	}
}

// replays passes a recording to a script.
func replays(t *testing.T, rec *Recorder, file *bytes.Buffer) *script {
	t.Helper()
	must(t, rec.Close())
	read, err := OpenRecording(file)
	must(t, err)
	p, err := newPlayback(read, "test")
	must(t, err)
	out := new(script)
	out.inputs = []string{"Begin"} // which newPlayback passed
	for p.loop = out; !p.finished; {
		must(t, p.step())
	}
	return out
}
