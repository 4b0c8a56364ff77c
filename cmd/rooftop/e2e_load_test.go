//go:build e2e && linux

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/loadgen"
	"github.com/rooftop-dev/rooftop/collect/probe"
)

// loadVariable makes the test binary a load generator: a separate process can run at a priority at which the server
// does not starve it.
const loadVariable = "ROOFTOP_E2E_LOAD"

// loadOrder is the input of the load generator.
type loadOrder struct {
	URL    string
	Key    string
	Load   loadgen.Load
	Result string // file for the summary
}

// loadResult is the part of the summary that the tests read.
type loadResult struct {
	Requests     int     `json:"requests"`
	Errors       int     `json:"errors"`
	OutputTokens int     `json:"output_tokens"`
	Elapsed      float64 `json:"elapsed_s"`
	PerSecond    float64 `json:"output_tokens_per_s"`
	Failures     []loadgen.Failure
}

// TestE2ELoad is the load generator, run by the other tests in a separate process until it is interrupted or done.
func TestE2ELoad(t *testing.T) {
	text := os.Getenv(loadVariable)
	if text == "" {
		t.Skip("NOT CHECKED by itself: the load generator, which the other end-to-end tests start and judge by")
	}
	var order loadOrder
	must(t, json.Unmarshal([]byte(text), &order))
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	target, err := collect.ParseTarget(order.URL)
	must(t, err)
	client, err := probe.NewClient(target, probe.Options{APIKey: order.Key})
	must(t, err)
	summary, err := loadgen.Run(ctx, client, order.Load, nil)
	if err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	must(t, document.Write(&out, &summary))
	must(t, os.WriteFile(order.Result, out.Bytes(), 0o600))
}

// generator is a running load generator.
type generator struct {
	cmd    *exec.Cmd
	output bytes.Buffer
	result string
	ended  bool
}

// offer starts a load that continues until end is called or its limit is reached.
func offer(t *testing.T, url, key string, load loadgen.Load) *generator {
	t.Helper()
	load.IgnoreEOS = true
	g := &generator{result: filepath.Join(t.TempDir(), "load.json")}
	order, err := json.Marshal(loadOrder{URL: url, Key: key, Load: load, Result: g.result})
	must(t, err)
	self, err := os.Executable()
	must(t, err)
	g.cmd = realTime(context.WithoutCancel(t.Context()), self, "-test.run=^TestE2ELoad$", "-test.timeout=0")
	g.cmd.Env = append(os.Environ(), loadVariable+"="+string(order))
	g.cmd.Stdout, g.cmd.Stderr = &g.output, &g.output
	must(t, g.cmd.Start())
	t.Cleanup(func() {
		if !g.ended {
			_ = g.cmd.Process.Kill()
			_ = g.cmd.Wait()
		}
	})
	return g
}

// end stops the load and returns what it measured.
func (g *generator) end(t *testing.T) loadResult {
	t.Helper()
	_ = g.cmd.Process.Signal(os.Interrupt)
	return g.await(t)
}

// await waits for a load with a limit.
func (g *generator) await(t *testing.T) loadResult {
	t.Helper()
	g.ended = true
	if err := g.cmd.Wait(); err != nil {
		t.Fatalf("load generator: %v\n%s", err, g.output.String())
	}
	text := readFile(t, g.result)
	var r loadResult
	must(t, json.Unmarshal(text, &r))
	t.Logf("load: %d requests, %d errors, %.0f tok/s in %.0f s %v", r.Requests, r.Errors, r.PerSecond, r.Elapsed, r.Failures)
	return r
}

// warmUp sends a few requests of a load's shape, so that nothing is compiled during the measurement. Their seed
// differs, so that the load finds none of them in the prefix cache.
func warmUp(t *testing.T, url, key string, load loadgen.Load) {
	t.Helper()
	load.Seed += 1 << 32
	load.Requests, load.Duration, load.Think = 2*min(load.Clients, 8), 0, loadgen.Delay{}
	load.Clients = min(load.Clients, 8)
	load.OutputTokens = loadgen.Fixed(min(load.OutputTokens.Min, 16))
	if r := offer(t, url, key, load).await(t); r.Errors > 0 {
		t.Fatalf("warm-up: %d errors: %v", r.Errors, r.Failures)
	}
}
