package serve

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Limits of a connection. keepAlive is vLLM's own (VLLM_HTTP_TIMEOUT_KEEP_ALIVE).
const (
	keepAlive      = 5 * time.Second
	headerTimeout  = 10 * time.Second
	maxHeaderBytes = 64 << 10
)

// life is one life of a server: from its start to its end.
type life struct {
	*loop
	settings *settings.Settings // as it was started; nobody writes to it
	log      *journal

	command     string // what started it, without secrets
	version     string
	fingerprint string
	details     bool // --enable-prompt-tokens-details
	forceUsage  bool // --enable-force-include-usage
	trackLoad   bool // --enable-server-load-tracking

	http     *http.Server
	ready    chan struct{} // closed once it listens
	failed   chan struct{} // closed where it never will; err says why
	err      error
	started  time.Time
	requests atomic.Uint64 // for their ids
	inFlight atomic.Int64  // of the endpoints that generate
	draining atomic.Bool
}

func newLife(m machine, s *settings.Settings, c *clock, j *journal) *life {
	f := &life{
		loop: newLoop(m, c), settings: s, log: j,
		ready: make(chan struct{}), failed: make(chan struct{}), started: time.Now(),
	}
	f.version = version(s.Release)
	f.fingerprint = fingerprint(f.version, s)
	if cfg, err := launch.Parse(append([]string{"vllm", "serve"}, s.Argv...), nil, nil); err == nil {
		f.command = cfg.String()
		on := func(flag string) bool { v, _, _ := cfg.Value(flag); return v == "true" }
		f.details = on("enable_prompt_tokens_details")
		f.forceUsage = on("enable_force_include_usage")
		f.trackLoad = on("enable_server_load_tracking")
	}
	f.http = &http.Server{
		Handler:           f.routes(),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       keepAlive,
		MaxHeaderBytes:    maxHeaderBytes,
		// What net/http would log are connections that clients broke off.
		ErrorLog: log.New(discard{}, "", 0),
	}
	return f
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// version is what /version answers: a release in three parts, marked.
func version(release string) string {
	if strings.Count(release, ".") < 2 {
		release += ".0"
	}
	return release + "+sim"
}

// fingerprint is the system_fingerprint of answers: version, sizes of
// parallelism, and a hash of the configuration (serve/utils/fingerprint.py).
func fingerprint(version string, s *settings.Settings) string {
	parts := []string{"vllm-" + version}
	if s.TensorParallel > 1 {
		parts = append(parts, fmt.Sprintf("tp%d", s.TensorParallel))
	}
	if s.DataParallel > 1 {
		parts = append(parts, fmt.Sprintf("dp%d", s.DataParallel))
	}
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, s.ModelName, s.GPU.Name, s.MaxModelLen, s.WeightDType, s.KVDType, s.BlockSize)
	return strings.Join(append(parts, fmt.Sprintf("%08x", h.Sum32())), "-")
}

// serve lets the life begin: the loop runs at once, the port opens when the
// server is up, as that of a real one does.
func (f *life) serve(address string) {
	go f.run()
	up := time.NewTimer(f.clock.until(f.m.Healthy()))
	defer up.Stop()
	for waiting := true; waiting; {
		select {
		case <-up.C:
			// The clock's scale may have changed meanwhile.
			left := f.clock.until(f.m.Healthy())
			waiting = left > 0
			up.Reset(left)
		case <-f.quit:
			f.fail(errEnded)
			return
		}
	}
	listener, err := listen(address)
	if err != nil {
		f.fail(err)
		return
	}
	f.log.add(f.clock.now(), "ready", f.started, entry{Address: listener.Addr().String()})
	close(f.ready)
	if err := f.http.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		f.log.add(f.clock.now(), "error", f.started, entry{Message: err.Error()})
	}
}

func (f *life) fail(err error) {
	f.err = err
	close(f.failed)
}

// drain stops taking connections and lets requests end by themselves, as long as
// ctx allows.
func (f *life) drain(ctx context.Context) error {
	f.draining.Store(true)
	return f.http.Shutdown(ctx)
}

// kill breaks every connection and ends the life.
func (f *life) kill() {
	f.draining.Store(true)
	_ = f.http.Close()
	f.end()
	f.log.add(f.clock.now(), "end", f.started, entry{})
}

// requestID makes the name of a request where the client gave none: 32 digits,
// of a sequence that the seed and the life fix.
func (f *life) requestID() string {
	mix := func(x uint64) uint64 { // splitmix64's finaliser
		x ^= x >> 30
		x *= 0xbf58476d1ce4e5b9
		x ^= x >> 27
		x *= 0x94d049bb133111eb
		return x ^ x>>31
	}
	n := f.requests.Add(1)
	high := mix(f.settings.Seed + n*0x9e3779b97f4a7c15)
	return fmt.Sprintf("%016x%016x", high, mix(high+uint64(f.started.UnixNano())))
}
