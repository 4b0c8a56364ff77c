package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// buildVersion names the build: the module's version, else the commit.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version, dirty := info.Main.Version, ""
	for _, s := range info.Settings {
		if s.Key == "vcs.modified" && s.Value == "true" {
			dirty = "-dirty"
		}
		if s.Key == "vcs.revision" && (version == "" || version == "(devel)") && len(s.Value) >= 12 {
			version = "devel-" + s.Value[:12]
		}
	}
	if version == "" || version == "(devel)" {
		return "devel"
	}
	return version + dirty
}

func newVersion(w *world) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Name this build",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			nvml := "with NVML"
			if !nvmlBuilt {
				nvml = "without NVML (built without cgo); nvidia-smi is used where it is present"
			}
			_, err := fmt.Fprintf(w.stdout, "rooftop %s %s/%s %s, %s\n", buildVersion(), runtime.GOOS, runtime.GOARCH, runtime.Version(), nvml)
			return err
		},
	}
}

// newMan writes the man pages, for packagers.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write man pages into a directory",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("man needs one DIR to write the pages into")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fail(exitError, err)
			}
			return doc.GenManTree(c.Root(), &doc.GenManHeader{Title: "ROOFTOP", Section: "1"}, args[0])
		},
	}
}
