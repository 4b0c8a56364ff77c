//go:build e2e && proof && linux

package main_test

import (
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/porttest"
)

// TestProofKilled kills rooftop during changes to a real vLLM with a separate engine process: after
// 'rooftop recover' it runs with the previous or the kept settings, and no engine of another start
// holds memory or a port.
//
//	ROOFTOP_E2E_VLLM=DIR go test -tags e2e,proof -run ProofKilled -v -timeout 1h ./cmd/rooftop
func TestProofKilled(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	caught := 0
	const kills = 5
	for n := range kills {
		// A stop takes some seconds, a start half a minute, followed by the measurement.
		after := time.Duration(rng.Int64N(int64(50 * time.Second)))
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			if realVictim(t, n%2 == 0).killedAndRecovered(after, true) {
				caught++
			}
		})
	}
	if caught < kills-1 {
		t.Errorf("%d of %d kills caught a run in the middle: the test shows little", caught, kills)
	}
}

// realVictim returns a vLLM with fewer slots than clients.
func realVictim(t *testing.T, inPlace bool) *victim {
	t.Helper()
	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := installation(t)
	v := &victim{t: t, dir: t.TempDir(), at: porttest.Address(t), rooftop: program, mark: "vllm.entrypoints.openai.api_server", starts: startTimeout}
	v.argv = []string{
		filepath.Join(dir, "venv", "bin", "python"), "-m", v.mark,
		"--model", filepath.Join(dir, "..", "model"), "--load-format", "dummy", "--enforce-eager",
		"--host", v.at.Addr().String(), "--port", strconv.Itoa(int(v.at.Port())), "--max-num-seqs", "4",
	}
	v.begin(serverEnvironment(), inPlace, "--clients", "32", "--prompt-tokens", "100", "--output-tokens", "64")
	return v
}
