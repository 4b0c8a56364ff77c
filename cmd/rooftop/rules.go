package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/autopilot"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/exporter"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

func newRules(w *cli.World) *cobra.Command {
	var slo string
	c := newCommand("rules", nil, func(c *cobra.Command, args []string) error {
		what := strings.Join(args, " ")
		if c.Flags().Changed("slo") && what != "" && what != "prometheus" {
			return cli.Usagef("rules %s: --slo is for the alerts of rules prometheus", what)
		}
		text, err := monitored(what, slo)
		if err == nil {
			_, err = fmt.Fprint(w.Stdout, text)
		}
		return err
	})
	c.ValidArgs = []string{"prometheus", "grafana", "servicemonitor", "podmonitor"}
	g := cli.GroupFlags(c)
	g.Group("The alerts").StringVar(&slo, "slo", "", "also alert on `OBJECTIVE`, such as ttft_p95=1s: 95 % of the requests get their first token within 1 s")
	return g.Done()
}

// monitored returns what one use of the command prints.
func monitored(what, slo string) (string, error) {
	switch what {
	case "", "prometheus":
		var o *verdict.Objective
		list, err := autopilot.ParseObjectives(slo)
		switch {
		case err != nil:
			return "", err
		case len(list) > 1:
			return "", cli.Usagef("--slo %s: give one objective to alert on", slo)
		case len(list) == 1:
			o = &list[0]
		}
		text, err := exporter.Rules(o)
		if err != nil {
			return "", cli.Usagef("--slo %w", err)
		}
		return text, nil
	case "grafana":
		return "", cli.Usagef("rules grafana prints one board: 'rooftop rules grafana NAME'; the boards are %s", strings.Join(exporter.Boards(), ", "))
	case "servicemonitor", "podmonitor":
		return exporter.Monitors(what), nil
	}
	if name, ok := strings.CutPrefix(what, "grafana "); ok {
		if text, known := exporter.Board(name); known {
			return text, nil
		}
	}
	return "", cli.Usagef("rules takes prometheus, grafana %s, servicemonitor or podmonitor, not %q", strings.Join(exporter.Boards(), ", grafana "), what)
}
