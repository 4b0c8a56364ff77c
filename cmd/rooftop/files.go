package main

import (
	"fmt"
	"os"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/pastruns"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// fileOptions control which files a run writes.
type fileOptions struct {
	dir  string // for exported reports; "" is the current directory
	none bool   // write no full report at the end
}

func (o *fileOptions) register(g *cli.FlagGroups) {
	f := g.Group("Files")
	f.StringVar(&o.dir, "report-dir", "", "`DIR` for the reports that the key e writes (default the current one)")
	f.BoolVar(&o.none, "no-report", false, "do not write the full report, otherwise stored under ~/.local/state/rooftop/runs")
}

func (o *fileOptions) check() error {
	if o.dir == "" {
		return nil
	}
	info, err := os.Stat(o.dir)
	if err != nil {
		return cli.Usagef("--report-dir: %w", err)
	}
	if !info.IsDir() {
		return cli.Usagef("--report-dir: %s is not a directory", o.dir)
	}
	return nil
}

// export writes the reports of a run in progress into the directory of --report-dir.
func (o *fileOptions) export(s *loop.Snapshot) ([]string, error) {
	return pastruns.Export(o.dir, s)
}

// keep writes the full reports of a run that has ended. A failure does not make the run fail.
func (o *fileOptions) keep(env func(string) (string, bool), s *loop.Snapshot, journalled string) kept {
	if o.none {
		return kept{}
	}
	files, err := pastruns.Keep(env, s, journalled)
	if err != nil {
		return kept{files: files, note: fmt.Sprintf("the full report could not be written: %v", err)}
	}
	if len(files) == 0 && s.Attached {
		return kept{note: "nothing was measured, so no report is kept"}
	}
	return kept{files: files}
}
