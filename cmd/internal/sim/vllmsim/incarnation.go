package vllmsim

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"log"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Limits of a connection. keepAlive is vLLM's own (VLLM_HTTP_TIMEOUT_KEEP_ALIVE).
const (
	keepAlive      = 5 * time.Second
	headerTimeout  = 10 * time.Second
	maxHeaderBytes = 64 << 10
)

// incarnation is one start of a server, until its end.
type incarnation struct {
	*loop
	settings *settings.Settings // of the start; read only

	command     string // launch command without secrets
	version     string
	fingerprint string
	details     bool // --enable-prompt-tokens-details

	http     *http.Server
	ready    chan struct{} // closed once it listens
	failed   chan struct{} // closed if it will never listen; err is the reason
	err      error
	left     chan struct{} // closed once it has left its port for good
	started  time.Time
	requests atomic.Uint64 // number of requests, for their IDs
}

func newIncarnation(m machine, s *settings.Settings, c *clock) *incarnation {
	f := &incarnation{
		loop: newLoop(m, c), settings: s,
		ready: make(chan struct{}), failed: make(chan struct{}), left: make(chan struct{}), started: time.Now(),
	}
	f.version = version(s.Release)
	f.fingerprint = fingerprint(f.version, s)
	if cfg, err := launch.Parse(append([]string{"vllm", "serve"}, s.Argv...), nil, nil); err == nil {
		f.command = cfg.String()
		f.details, _, _ = cfg.Bool("enable_prompt_tokens_details")
	}
	f.http = &http.Server{
		Handler:           f.routes(),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       keepAlive,
		MaxHeaderBytes:    maxHeaderBytes,
		// net/http would only log connections that clients closed.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	return f
}

// version returns the version for /version: a release in three parts, marked as simulated.
func version(release string) string {
	if strings.Count(release, ".") < 2 {
		release += ".0"
	}
	return release + "+sim"
}

// fingerprint returns the system_fingerprint of answers: version, degrees of parallelism, and a hash of the
// configuration (serve/utils/fingerprint.py).
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

// serve starts the loop, and opens the port when the server is up, like a real server.
func (f *incarnation) serve(address string) {
	defer close(f.left)
	go f.run()
	up := time.NewTimer(f.clock.until(f.m.Healthy()))
	defer up.Stop()
	select {
	case <-up.C:
	case <-f.quit:
		f.fail(errEnded)
		return
	}
	listener, err := listen(address)
	if err != nil {
		f.fail(err)
		return
	}
	close(f.ready)
	_ = f.http.Serve(listener) // until drain or kill closes it
}

func (f *incarnation) fail(err error) {
	f.err = err
	close(f.failed)
}

// drain stops accepting connections and waits until requests have ended or ctx ends.
func (f *incarnation) drain(ctx context.Context) error {
	return f.http.Shutdown(ctx)
}

// kill breaks every connection and ends the server. The port is free afterwards.
func (f *incarnation) kill() {
	_ = f.http.Close()
	f.end()
	// A server that has just begun to listen closes its listener by itself.
	<-f.left
}

// requestID returns the ID of a request without one: 32 digits of a sequence that is determined by the seed and
// the server.
func (f *incarnation) requestID() string {
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
