package vllm

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/engine"
)

func TestHealthSaysOnlyWhatIsKnown(t *testing.T) {
	for _, c := range []struct {
		status int
		want   engine.HealthState
		why    string
		asked  int // of three readings
	}{
		{http.StatusOK, engine.HealthOK, "", 3},
		{http.StatusServiceUnavailable, engine.HealthFailed, "/health answers 503", 3},
		{http.StatusInternalServerError, engine.HealthFailed, "/health answers 500", 3},
		{http.StatusNotFound, "", "/health answers 404", 1},
		{http.StatusMethodNotAllowed, "", "/health answers 405", 1},
		{http.StatusUnauthorized, "", "/health answers 401", 3},
		{http.StatusTooManyRequests, "", "/health answers 429", 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(c.status) }}
			h := enginepage.NewHealth(s.client(t, collect.Secret{}), "/health")
			for range 3 {
				if got := h.Read(t.Context()); got.State != c.want || got.Why != c.why {
					t.Errorf("%d: %+v, want %q because %q", c.status, got, c.want, c.why)
				}
			}
			if n := len(s.requests()); n != c.asked {
				t.Errorf("%d: asked %d times, want %d", c.status, n, c.asked)
			}
		})
	}
}

func TestHealthOfASilentServerIsUnknownSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(http.ResponseWriter, *http.Request) { time.Sleep(time.Minute) }}
		h, began := enginepage.NewHealth(s.client(t, collect.Secret{}), "/health"), time.Now()
		if got := h.Read(t.Context()); got.State != "" || got.Why != "/health does not answer" || time.Since(began) != time.Second {
			t.Errorf("%+v after %v", got, time.Since(began))
		}
		time.Sleep(time.Minute) // lets the server end
	})
}
