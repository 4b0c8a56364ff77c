package vllmsim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/collect/gpu"
	"github.com/rooftop-dev/rooftop/engine"
)

// begin starts a request that stays open; its end comes through the channel.
func begin(ctx context.Context, t *testing.T, h *Host, body string) chan error {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL()+"/v1/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	done := make(chan error, 1)
	go func() {
		w, err := http.DefaultClient.Do(r)
		if err == nil {
			_, err = io.Copy(io.Discard, w.Body)
			_ = w.Body.Close()
		}
		done <- err
	}()
	return done
}

// The server notices a client that goes away in any state of its request.
func TestDisconnect(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		hold       bool
	}{
		{"within a stream", `{"prompt":"x","max_tokens":100000,"stream":true}`, false},
		{"before the first token", `{"prompt":"x","stream":true}`, true},
		{"without streaming", `{"prompt":"x","max_tokens":100000}`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newFake()
			m.hold = tt.hold
			h := host(t, m, fakeSettings())
			ctx, cancel := context.WithCancel(t.Context())
			done := begin(ctx, t, h, tt.body)
			<-m.submitted
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("the client got %v", err)
			}
			if id := <-m.cancelled; id != 1 {
				t.Errorf("request %d was cancelled, want 1", id)
			}
		})
	}
}

// The port is closed until the server is up.
func TestTheServerBindsLate(t *testing.T) {
	m := newFake()
	m.healthy = time.Hour
	h := unready(t, m, fakeSettings())
	if _, err := http.Get(h.URL() + "/health"); err == nil {
		t.Error("a server that starts answered")
	}
	if left := h.StartsIn(); left < 59*time.Minute || left > time.Hour {
		t.Errorf("it starts in %v, want an hour", left)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Ready(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Ready returned %v", err)
	}
	h.Close(t.Context(), true)
	if err := h.Ready(t.Context()); !errors.Is(err, errEnded) {
		t.Errorf("Ready of an ended incarnation returned %v", err)
	}
}

func TestPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = claim("127.0.0.1", l.Addr().(*net.TCPAddr).Port)
	if want := fmt.Sprintf("address already in use: %s; stop what listens there, or give another --port", l.Addr()); !errors.Is(err, ErrPort) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if at, err := claim("127.0.0.1", 0); err != nil || strings.HasSuffix(at, ":0") {
		t.Errorf("a free port is %s, %v", at, err)
	}
	if _, err := claim("no host", 1); err == nil || errors.Is(err, ErrPort) || strings.Contains(err.Error(), "\n") {
		t.Errorf("a host that is none: %v", err)
	}
}

// A restart breaks what is in flight, and the next server starts on the same
// port.
func TestRestart(t *testing.T) {
	first, second := newFake(), newFake()
	h := host(t, first, fakeSettings())
	first.hold = true
	done := begin(t.Context(), t, h, `{"prompt":"x","stream":true}`)
	<-first.submitted
	url := h.URL()

	s := fakeSettings()
	s.Served = []string{"next"}
	h.mu.Lock()
	h.stop(t.Context(), false)
	h.begin(second, s)
	h.mu.Unlock()
	if err := <-done; err == nil {
		t.Error("a request in flight ended as if nothing had happened")
	}
	if err := h.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if h.URL() != url || h.Settings().Served[0] != "next" || h.Sizing().NumBlocks != 100 {
		t.Errorf("the next incarnation is at %s, want %s, and serves %v", h.URL(), url, h.Settings().Served)
	}
	got := ask(t, h, "POST", "/v1/completions", `{"prompt":"x"}`)
	if got.status != 200 || !strings.Contains(got.body, `"model":"next"`) {
		t.Errorf("status %d, %s", got.status, got.body)
	}
	if len(second.submitted) != 1 || len(first.submitted) != 0 {
		t.Errorf("the starts got %d and %d requests more, want 0 and 1", len(first.submitted), len(second.submitted))
	}
}

// A drain waits for requests and accepts no new ones.
func TestDrain(t *testing.T) {
	m := newFake()
	h := host(t, m, fakeSettings())
	done := begin(t.Context(), t, h, `{"prompt":"x","max_tokens":50,"stream":true}`)
	<-m.submitted
	h.Close(t.Context(), true)
	if err := <-done; err != nil {
		t.Errorf("a request that was under way got %v", err)
	}
	if _, err := http.Get(h.URL() + "/health"); err == nil {
		t.Error("a drained server answers")
	}
	h.Close(t.Context(), true) // once more does nothing
}

// A panic of the machine breaks connections and is reported; the program continues.
func TestAMachineThatBreaks(t *testing.T) {
	m := &breaks{newFake()}
	h := host(t, m, fakeSettings())
	if _, err := http.Post(h.URL()+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"x"}`)); err == nil {
		t.Error("a server that broke answered")
	}
	if err := h.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "internal error: out of pieces") {
		t.Errorf("Wait returned %v", err)
	}
	h.Close(t.Context(), false)
}

type breaks struct{ *fakeMachine }

func (m *breaks) Submit(time.Duration, Call, Sink) (core.ID, error) {
	panic("out of pieces")
}

// Steps shorter than the quantum share a wake-up, and idle time costs none.
func TestShortStepsShareWakeUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newFake()
		m.step = 20 * time.Microsecond
		l := newLoop(m, newClock(1))
		go l.run()
		defer l.end()
		time.Sleep(time.Hour)
		idle := 0
		finished := make(chan time.Duration, 1)
		err := l.do(t.Context(), func(now time.Duration) {
			idle = m.advances
			_, err := m.Submit(now, Call{MaxTokens: 50_000}, func(u Update) {
				if u.Finish == core.Length {
					finished <- u.At - now
				}
			})
			if err != nil {
				t.Error(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if took := <-finished; took != time.Second {
			t.Errorf("50,000 steps took %v of the machine's time, want 1 s", took)
		}
		synctest.Wait()
		steps, advances := 0, 0
		if err := l.do(t.Context(), func(time.Duration) { steps, advances = m.steps, m.advances }); err != nil {
			t.Fatal(err)
		}
		if steps != 50_000 || idle > 2 || advances-idle > 1010 {
			t.Errorf("%d steps in %d wake-ups, %d while idle; want 50,000 in about 1,000, and at most two", steps, advances-idle, idle)
		}
	})
}

func TestAdmin(t *testing.T) {
	m := newFake()
	s := fakeSettings()
	s.Argv = []string{"org/model", "--api-key", "sesame"}
	h := host(t, m, s)
	for _, tt := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"fault", `{"fault":"slow@0s+30sx1.5#1"}`, 200, `{"injected":"slow@0s+30sx1.5#1"}`},
		{"unknown fault", `{"fault":"fire@0s"}`, 400, `kind one of stall, slow, die`},
		{"no fault", `{}`, 400, `kind one of stall, slow, die`},
		{"no such rank", `{"fault":"stall@0s#2"}`, 400, `there is no such rank`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := ask(t, h, "POST", "/sim/fault", tt.body); got.status != tt.status || !strings.Contains(got.body, tt.want) {
				t.Errorf("status %d, %s; want %d with %s", got.status, got.body, tt.status, tt.want)
			}
		})
	}
	want := settings.Fault{Kind: "slow", Factor: 1.5, For: 30 * time.Second, Rank: 1}
	if diff := cmp.Diff(want, <-m.injected); diff != "" {
		t.Errorf("fault (-want +got):\n%s", diff)
	}
	if state := ask(t, h, "GET", "/sim/state", ""); strings.Contains(state.body, "sesame") || !strings.Contains(state.body, `"command":"vllm serve org/model`) {
		t.Errorf("a secret is shown, or the command is not:\n%s", state.body)
	}
}

// Requests from other machines have no access to faults and logs.
func TestAdminIsForThisMachine(t *testing.T) {
	for address, want := range map[string]bool{"127.0.0.1:4": true, "[::1]:4": true, "10.0.0.7:4": false, "nonsense": false} {
		if got := fromHere(&http.Request{RemoteAddr: address}); got != want {
			t.Errorf("a request from %s is local: %v", address, got)
		}
	}
}

// The page of the simulated GPUs is read by the source that reads DCGM
// exporters, field by field.
func TestGPUPage(t *testing.T) {
	h := host(t, newFake(), fakeSettings())
	fetch := func(context.Context) ([]byte, error) { return []byte(ask(t, h, "GET", "/sim/gpu", "").body), nil }
	source, missing := gpu.Open(t.Context(), gpu.Options{DCGM: fetch, Remote: "simulated"})
	if source == nil {
		t.Fatal(missing)
	}
	defer source.Close()
	reading, err := source.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(reading.Devices) != 2 {
		t.Fatalf("%d devices, want 2", len(reading.Devices))
	}
	d := reading.Devices[0]
	if d.Name != "H100 SXM" || d.UUID != "GPU-5151" || d.Throttle != 4 || !d.ThrottleOK {
		t.Errorf("device %+v", d)
	}
	for field, want := range map[engine.GPUField]float64{
		engine.GPUUtil: 0.5, engine.GPUMemUtil: 0.25, engine.GPUDRAMActive: 0.125, engine.GPUTensorUtil: 0.0625, engine.GPUSMActive: 0.75,
		engine.GPUPowerW: 350, engine.GPUPowerLimitW: 700, engine.GPUVRAMTotal: 80 << 30, engine.GPUVRAMUsed: 60 << 30,
		engine.GPUTemperatureC: 61, engine.GPUSMClockMHz: 1980, engine.GPUMemClockMHz: 2619, engine.GPUNVLinkTxBps: 1e9, engine.GPUPCIeTxBps: 2e8,
	} {
		if got := d.Fields[field]; !got.OK || got.V != want {
			t.Errorf("field %d is %v, want %v", field, got, want)
		}
	}
	if missing := source.Missing(); len(missing) > 0 {
		t.Errorf("the page lacks %v", missing)
	}
}
