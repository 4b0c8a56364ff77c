//go:build e2e && linux

// End-to-end tests against a real vLLM on the CPU of this machine. They need
// ROOFTOP_E2E_VLLM, the directory that .ci/install-vllm prints, and take about
// ten minutes on two cores:
//
//	go test -tags e2e -run E2E ./cmd/rooftop -v -timeout 30m
//
// Each states a load and a wrong setting, and what rooftop must report. If rooftop recommends a flag, the server is
// started again with that flag: the server decides whether the advice was good.
package main_test

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
	"github.com/rooftop-dev/rooftop/collect/loadgen"
)

// chat is short chat: 100 tokens in, 64 out. Clients start at different times, so that they do not move in waves.
func chat(clients int) loadgen.Load {
	return loadgen.Load{Clients: clients, PromptTokens: loadgen.Fixed(100), OutputTokens: loadgen.Fixed(64), Style: loadgen.Characters, Stagger: 2 * time.Second, Seed: 1}
}

// agrees compares rooftop's rates with the page's own counters around its run. Prompts and ends of requests come in
// groups, and one between a reading and the run is only in the reading. Of few requests that is a large share, so
// those rates are shown and not judged.
func agrees(t *testing.T, d *diagnosis, before, after reading) {
	t.Helper()
	rates := after.since(before)
	requests := 0.25
	if n := after.finished - before.finished; n < 30 {
		t.Logf("NOT CHECKED: requests and prompt tokens a second, as %.0f requests were finished", n)
		requests = math.Inf(1)
	}
	for _, q := range []struct {
		name      string
		want, off float64
	}{
		{"generation_tokens_per_s", rates.generated, 0.10},
		{"requests_per_s", rates.finished, requests},
		{"prompt_tokens_per_s", rates.prompted, requests},
	} {
		got := d.measured(t, q.name)
		t.Logf("measured.%s: %.2f, by the counters %.2f over %.1f s", q.name, got, q.want, after.at.Sub(before.at).Seconds())
		if math.Abs(got-q.want) > q.off*max(q.want, 1e-9) {
			t.Errorf("measured.%s is %.2f, the counters say %.2f", q.name, got, q.want)
		}
	}
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%q, want a number", text)
	}
	return n
}

func TestE2EConcurrencySaturation(t *testing.T) {
	load := chat(32)
	at := programtest.Address(t)
	s := startServer(t, at, "--max-num-seqs", "4")
	warmUp(t, s.url(), "", load)
	g := offer(t, s.url(), "", load)
	s.settle(t, 3*time.Second)

	record := filepath.Join(t.TempDir(), "slots.rooftop")
	first := s.read(t)
	a := rooftop(t, "diagnose", "--url", s.url()+"/metrics", "--duration", "20s", "--json", "--record", record)
	last := s.read(t)
	d := parse(t, a)
	r := d.recommends(t, "concurrency-saturation", "flag", "--max-num-seqs")
	if g.end(t).Errors > 0 {
		t.Error("requests failed while rooftop looked on")
	}
	if a.code != 3 {
		t.Errorf("exit code %d, want 3", a.code)
	}
	agrees(t, &d, first, last)
	d.fact(t, "max_num_seqs", 4.0, "cmdline")
	d.between(t, "running_mean", 3.5, 4)
	d.between(t, "waiting_mean", 26, 30)
	d.fired(t, "concurrency-saturation")
	to := number(t, r.To)
	if r.From != "4" || to < 32 || to > 64 {
		t.Errorf("recommended slots %s -> %s, want 4 -> 32 to 64: those that run and those that wait", r.From, r.To)
	}

	t.Run("replay", func(t *testing.T) {
		again := rooftop(t, "replay", record, "--json")
		if !bytes.Equal(again.stdout, a.stdout) {
			t.Errorf("the recording gives another document:\n%s", cmp.Diff(string(a.stdout), string(again.stdout)))
		}
		if again.code != a.code {
			t.Errorf("exit code %d, want %d", again.code, a.code)
		}
		if again.took > 5*time.Second {
			t.Errorf("replay took %v", again.took)
		}
		report := rooftop(t, "replay", record)
		if !strings.Contains(string(report.stdout), "--max-num-seqs") {
			t.Errorf("the report does not name the flag:\n%s", report.stdout)
		}
		for line := range strings.Lines(string(report.stdout)) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("line of %d columns in the report: %s", n, line)
			}
		}
	})
}

func TestE2EOrdinaryServer(t *testing.T) {
	at := programtest.Address(t)
	flags := []string{"--max-num-seqs", "32"}
	s := launch(t, at, nil, flags...)
	// The case about secrets starts the server again.
	t.Cleanup(func() { s.stop() })

	t.Run("idle", func(t *testing.T) {
		d := diagnose(t, s, 4)
		if d.Outcome != "no-load" || d.Recommendation != nil {
			t.Errorf("outcome %s, recommendation %+v, want no-load and none", d.Outcome, d.Recommendation)
		}
	})

	t.Run("secrets", func(t *testing.T) {
		key, token := "e2e-key-"+rand.Text(), "hf_"+rand.Text()
		s.stop()
		s = launch(t, at, []string{"VLLM_API_KEY=" + key, "HF_TOKEN=" + token}, flags...)
		keepsSecrets(t, s, key, token)
	})
}

// keepsSecrets runs every command that reads a server whose environment has secrets, and searches all output for
// them.
func keepsSecrets(t *testing.T, s *vllm, key, token string) {
	dir := t.TempDir()
	keyFile, record := filepath.Join(dir, "key"), filepath.Join(dir, "run.rooftop")
	must(t, os.WriteFile(keyFile, []byte(key+"\n"), 0o600))
	load := chat(8)
	load.Seed = 7
	g := offer(t, s.url(), key, load)
	s.settle(t, time.Second)
	defer g.end(t)

	clean := func(what string, text []byte) {
		t.Helper()
		for name, secret := range map[string]string{"VLLM_API_KEY": key, "HF_TOKEN": token} {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s shows %s", what, name)
			}
		}
	}
	metrics := s.url() + "/metrics"
	for _, args := range [][]string{
		{"diagnose", "--url", metrics, "--duration", "8s", "--json", "-v", "--api-key-file", keyFile, "--record", record},
		{"diagnose", "--url", metrics, "--duration", "8s", "-v"},
		{"replay", record, "-v"},
		{"replay", record, "--json", "-v"},
		{"doctor", "--url", metrics},
	} {
		a := rooftop(t, args...)
		if len(a.stdout) == 0 {
			t.Errorf("%s prints nothing: %s", describe(args), a.stderr)
		}
		clean(describe(args)+" on stdout", a.stdout)
		clean(describe(args)+" on stderr", a.stderr)
		if args[0] == "diagnose" && args[5] == "--json" {
			// If its process were not found, there would be no secret to keep.
			d := parse(t, a)
			d.fact(t, "max_num_seqs", 32.0, "cmdline")
		}
	}
	clean("the recording", unzip(t, record))
	files, err := os.ReadDir(dir)
	must(t, err)
	if len(files) != 2 {
		t.Errorf("rooftop left %d files, want the recording alone beside the key", len(files)-1)
	}
}

func unzip(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatalf("the recording is not a gzip file: %v", err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatalf("the recording is damaged: %v", err)
	}
	if !bytes.Contains(text, []byte("vllm:num_requests_running")) {
		t.Error("the recording holds no page")
	}
	return text
}
