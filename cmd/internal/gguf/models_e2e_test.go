//go:build e2e

package gguf_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/atomicfile"
	"github.com/rooftop-dev/rooftop/cmd/internal/gguf"
)

// TestE2EModels writes the models of the tests on real GGML runtimes, with random weights, that the directory
// ROOFTOP_MODELS does not have yet.
//
//	ROOFTOP_MODELS=DIR go test -tags e2e -run E2EModels -v ./cmd/internal/gguf
func TestE2EModels(t *testing.T) {
	dir := os.Getenv("ROOFTOP_MODELS")
	if dir == "" {
		t.Skip("NOT CHECKED: ROOFTOP_MODELS names no directory for the models")
	}
	for _, s := range gguf.Models() {
		path := filepath.Join(dir, s.Name+".gguf")
		if _, err := os.Stat(path); err == nil {
			continue
		}
		if err := atomicfile.Write(path, 0o644, func(w io.Writer) error { return gguf.Write(w, s) }); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.1f million weights", path, float64(s.Parameters())/1e6)
	}
}
