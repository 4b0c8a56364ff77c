package main

import (
	_ "embed"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
)

// alerts are the recording rules and alerts for Prometheus. Their test for promtool is
// testdata/alerts_test.yml.
//
//go:embed alerts/prometheus.yml
var alerts string

func newRules(w *cli.World) *cobra.Command {
	return newCommand("rules", noArgs, func(*cobra.Command, []string) error {
		_, err := fmt.Fprint(w.Stdout, alerts)
		return err
	})
}
