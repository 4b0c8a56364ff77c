package main

import (
	"fmt"
	"os"
	"runtime"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
)

func newVersion(w *cli.World) *cobra.Command {
	return newCommand("version", noArgs, func(*cobra.Command, []string) error {
		nvml := "with NVML"
		if !nvmlBuilt {
			nvml = "without NVML (built without cgo); nvidia-smi is used where it is present"
		}
		_, err := fmt.Fprintf(w.Stdout, "rooftop %s %s/%s %s, %s\n", cli.Version(), runtime.GOOS, runtime.GOARCH, runtime.Version(), nvml)
		return err
	})
}

// newMan returns the command that writes the man pages, for packagers.
func newMan() *cobra.Command {
	return newCommand("man", exactly(1, "one DIR", "the pages are written into it"), func(c *cobra.Command, args []string) error {
		if err := os.MkdirAll(args[0], 0o755); err != nil {
			return err
		}
		return doc.GenManTree(c.Root(), &doc.GenManHeader{Title: "ROOFTOP", Section: "1"}, args[0])
	})
}
