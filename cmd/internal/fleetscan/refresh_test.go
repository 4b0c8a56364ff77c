package fleetscan

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rooftop-dev/rooftop/engine/fleet"
)

// A list is read again after each pause or when asked for. A reading that fails keeps the servers, and is reported.
func TestList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var readings atomic.Int64
		var fails atomic.Bool
		l := New("here", 30*time.Second, func() time.Duration { return time.Since(began) }, func(ctx context.Context, progress func(done, all int)) ([]fleet.Server, error) {
			readings.Add(1)
			progress(1, 2)
			select {
			case <-time.After(4 * time.Second):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			if fails.Load() {
				return nil, errors.New("503")
			}
			return []fleet.Server{{Name: "a"}, {Name: "b"}}, nil
		})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan bool)
		go func() {
			l.Run(ctx)
			close(done)
		}()
		check := func(name string, after time.Duration, want fleet.Live, servers int, n int64) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			got := *l.Latest()
			if len(got.Servers) != servers || readings.Load() != n {
				t.Errorf("%s: %d servers after %d readings, want %d after %d", name, len(got.Servers), readings.Load(), servers, n)
			}
			if got.Now != time.Since(began) {
				t.Errorf("%s: it is %v, want %v", name, got.Now, time.Since(began))
			}
			got.Servers, got.Now = nil, 0
			want.Source, want.Every = "here", 30*time.Second
			if got.Source != want.Source || got.Reading != want.Reading || got.Read != want.Read || got.Done != want.Done || got.All != want.All || got.Failed != want.Failed || got.FailedAt != want.FailedAt {
				t.Errorf("%s: %+v, want %+v", name, got, want)
			}
		}
		check("the first reading", time.Second, fleet.Live{Reading: true, Done: 1, All: 2}, 0, 1)
		check("read", 4*time.Second, fleet.Live{Read: 4 * time.Second, Done: 1, All: 2}, 2, 1)
		fails.Store(true)
		check("the second reading", 30*time.Second, fleet.Live{Reading: true, Read: 4 * time.Second, Done: 1, All: 2}, 2, 2)
		check("failed", 4*time.Second, fleet.Live{Read: 4 * time.Second, Done: 1, All: 2, Failed: "503", FailedAt: 38 * time.Second}, 2, 2)
		if l.Err() == nil || l.Latest().Age() != 35*time.Second {
			t.Errorf("error %v, %v old", l.Err(), l.Latest().Age())
		}
		fails.Store(false)
		l.Again()
		check("asked for", time.Second, fleet.Live{Reading: true, Read: 4 * time.Second, Done: 1, All: 2, Failed: "503", FailedAt: 38 * time.Second}, 2, 3)
		check("read again", 4*time.Second, fleet.Live{Read: 43 * time.Second, Done: 1, All: 2, FailedAt: 38 * time.Second}, 2, 3)
		same := l.Latest()
		time.Sleep(100 * time.Millisecond)
		if l.Latest() != same {
			t.Error("another state within a second")
		}
		stop()
		<-done
	})
}
