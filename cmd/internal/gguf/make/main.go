// Command make writes models with random weights into a directory, for tests on real GGML
// runtimes: all of them, or the named ones.
//
//	go run ./cmd/internal/gguf/make DIR [NAME...]
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/rooftop-dev/rooftop/cmd/internal/atomicfile"
	"github.com/rooftop-dev/rooftop/cmd/internal/gguf"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: make DIR [NAME...]")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "make:", err)
		os.Exit(1)
	}
}

// write writes the named models, or all if there are no names, except those that already exist.
func write(dir string, names []string) error {
	for _, s := range gguf.Models() {
		path := filepath.Join(dir, s.Name+".gguf")
		if _, err := os.Stat(path); err == nil || len(names) > 0 && !slices.Contains(names, s.Name) {
			continue
		}
		if err := atomicfile.Write(path, 0o644, func(w io.Writer) error { return gguf.Write(w, s) }); err != nil {
			return err
		}
		fmt.Printf("%s: %.1f million weights\n", path, float64(s.Parameters())/1e6)
	}
	return nil
}
