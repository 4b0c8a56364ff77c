// Command make writes models with random weights into a directory, for tests on real GGML
// runtimes.
//
//	go run ./cmd/internal/gguf/make DIR
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/rooftop-dev/rooftop/cmd/internal/atomicfile"
	"github.com/rooftop-dev/rooftop/cmd/internal/gguf"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: make DIR")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "make:", err)
		os.Exit(1)
	}
}

// write writes the models that do not exist yet.
func write(dir string) error {
	for _, s := range gguf.Models() {
		path := filepath.Join(dir, s.Name+".gguf")
		if _, err := os.Stat(path); err == nil {
			continue
		}
		if err := atomicfile.Write(path, 0o644, func(w io.Writer) error { return gguf.Write(w, s) }); err != nil {
			return err
		}
		fmt.Printf("%s: %.1f million weights\n", path, float64(s.Parameters())/1e6)
	}
	return nil
}
