package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/report"
)

func newCatalog(w *world) *cobra.Command {
	var out output
	var file string
	c := &cobra.Command{
		Use:   "catalog",
		Short: "The GPUs, CPUs, models, prices and flags that rooftop knows",
		Long: `The catalog holds datasheet peaks of GPUs and CPUs, shapes of models, market
prices and vLLM's flags with their defaults by version, each with its source.
A YAML file of your own can add to it or correct it: --catalog FILE of the
measuring commands.`,
	}
	c.PersistentFlags().BoolVar(&out.json, "json", false, "print JSON")
	c.PersistentFlags().StringVar(&out.color, "color", "auto", "colour: `auto`, always or never")
	c.PersistentFlags().BoolVar(&out.ascii, "ascii", false, "only ASCII characters")
	c.PersistentFlags().StringVar(&file, "catalog", "", "a YAML `FILE` with further GPUs, CPUs and models")
	list := &cobra.Command{
		Use:   "list [gpus|cpus|models]",
		Short: "List GPUs, CPUs and models",
		RunE: func(_ *cobra.Command, args []string) error {
			what := strings.Join(args, " ")
			if what != "" && what != "gpus" && what != "cpus" && what != "models" {
				return usage("catalog list takes gpus, cpus or models, not %q", what)
			}
			wanted := func(list string) bool { return what == "" || what == list }
			cat, _, err := userCatalog(file)
			if err != nil {
				return err
			}
			if out.json {
				doc := map[string]any{}
				if wanted("gpus") {
					doc["gpus"] = cat.GPUs()
				}
				if wanted("cpus") {
					doc["cpus"] = cat.CPUs()
				}
				if wanted("models") {
					doc["models"] = cat.Models()
				}
				return writeJSON(w, doc)
			}
			if wanted("gpus") {
				if err := report.WriteGPUs(w.stdout, cat.GPUs(), out.style(w)); err != nil {
					return fail(exitError, err)
				}
			}
			if wanted("cpus") {
				if err := report.WriteCPUs(w.stdout, cat.CPUs(), out.style(w)); err != nil {
					return fail(exitError, err)
				}
			}
			if wanted("models") {
				if err := report.WriteModels(w.stdout, cat.Models(), out.style(w)); err != nil {
					return fail(exitError, err)
				}
			}
			return nil
		},
	}
	show := &cobra.Command{
		Use:     "show NAME",
		Short:   "Show one GPU, CPU or model with its source",
		Example: "  rooftop catalog show \"H100 SXM\"\n  rooftop catalog show nvidia/Llama-3.3-70B-Instruct-FP4",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("catalog show needs the NAME of a GPU, CPU or model")
			}
			cat, _, err := userCatalog(file)
			if err != nil {
				return err
			}
			return showEntry(w, &out, cat, strings.Join(args, " "))
		},
	}
	check := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a catalog file: every fault with file, line and field",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("catalog check needs one FILE")
			}
			text, err := readFile(args[0], 1<<20)
			if err != nil {
				return usage("catalog check: %w", err)
			}
			problems := catalog.Default().Check(bytes.NewReader(text), args[0])
			for _, p := range problems {
				fmt.Fprintln(w.stderr, p)
			}
			if len(problems) > 0 {
				return exit(exitError)
			}
			_, err = fmt.Fprintf(w.stdout, "%s: ok\n", args[0])
			return err
		},
	}
	c.AddCommand(list, show, check)
	return c
}

func showEntry(w *world, o *output, cat *catalog.Catalog, name string) error {
	gpu, gpuErr := cat.FindGPU(name, 0)
	if gpuErr == nil {
		if o.json {
			return writeJSON(w, gpu)
		}
		return report.WriteGPU(w.stdout, gpu, o.style(w))
	}
	cpu, cpuErr := cat.FindCPU(name)
	if cpuErr == nil {
		if o.json {
			return writeJSON(w, cpu)
		}
		return report.WriteCPU(w.stdout, cpu, o.style(w))
	}
	model, modelErr := cat.FindModel(name)
	if modelErr == nil {
		if o.json {
			return writeJSON(w, model)
		}
		return report.WriteModel(w.stdout, model, o.style(w))
	}
	var ambiguous *catalog.AmbiguousError
	if asAmbiguous(gpuErr, &ambiguous) || asAmbiguous(cpuErr, &ambiguous) || asAmbiguous(modelErr, &ambiguous) {
		return usage("%w", ambiguous)
	}
	return usage("no GPU, CPU or model of the catalog is called %q; 'rooftop catalog list' lists them", name)
}
