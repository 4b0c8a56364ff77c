package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/reference"
	"github.com/rooftop-dev/rooftop/engine/page"
)

func newCatalog(w *cli.World) *cobra.Command {
	var out cli.Output
	var file string
	// with returns a command function that gets the catalog, including the user's file if there is
	// one.
	with := func(run func(*catalog.Catalog, []string) error) func(*cobra.Command, []string) error {
		return func(_ *cobra.Command, args []string) error {
			cat, _, err := cli.UserCatalog(file)
			if err != nil {
				return err
			}
			return run(cat, args)
		}
	}
	c := newCommand("catalog", nil, nil)
	g := cli.GroupFlags(c)
	g.Group("Entries").StringVar(&file, "catalog", "", "YAML `FILE` with further GPUs, CPUs and models")
	out.Register(g, "")
	g.Persist()
	c.AddCommand(
		newCommand("catalog-list", nil, with(func(cat *catalog.Catalog, args []string) error {
			return listEntries(w, &out, cat, strings.Join(args, " "))
		})),
		newCommand("catalog-show", nil, with(func(cat *catalog.Catalog, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("catalog show needs the NAME of a GPU, CPU or model; 'rooftop catalog list' lists them")
			}
			return showEntry(w, &out, cat, strings.Join(args, " "))
		})),
		newCommand("catalog-check", exactly(1, "one FILE", "it is checked against the built-in catalog"), func(_ *cobra.Command, args []string) error {
			return checkCatalog(w, args[0])
		}),
	)
	return c
}

// listEntries prints one list of the catalog, or all of them.
func listEntries(w *cli.World, out *cli.Output, cat *catalog.Catalog, what string) error {
	lists := []struct {
		name    string
		entries any
		page    *page.Page
	}{
		{"gpus", cat.GPUs(), reference.GPUs(cat.GPUs())},
		{"cpus", cat.CPUs(), reference.CPUs(cat.CPUs())},
		{"models", cat.Models(), reference.Models(cat.Models())},
	}
	document := map[string]any{}
	whole := &page.Page{}
	for _, list := range lists {
		if what == "" || what == list.name {
			document[list.name] = list.entries
			whole.Sections = append(whole.Sections, list.page.Sections...)
		}
	}
	if len(document) == 0 {
		return cli.Usagef("catalog list takes gpus, cpus or models, not %q", what)
	}
	return cli.Print(w, out, document, cli.Text(func(map[string]any) *page.Page { return whole }), cli.Document)
}

func showEntry(w *cli.World, o *cli.Output, cat *catalog.Catalog, name string) error {
	gpu, gpuErr := cat.FindGPU(name, 0)
	if gpuErr == nil {
		return cli.Print(w, o, gpu, cli.Text(reference.GPU), cli.Document)
	}
	cpu, cpuErr := cat.FindCPU(name)
	if cpuErr == nil {
		return cli.Print(w, o, cpu, cli.Text(reference.CPU), cli.Document)
	}
	model, modelErr := cat.FindModel(name)
	if modelErr == nil {
		return cli.Print(w, o, model, cli.Text(reference.Model), cli.Document)
	}
	var ambiguous *catalog.AmbiguousError
	if slices.ContainsFunc([]error{gpuErr, cpuErr, modelErr}, func(err error) bool { return errors.As(err, &ambiguous) }) {
		return cli.Usagef("%w", ambiguous)
	}
	return cli.Usagef("the catalog has no GPU, CPU or model named %q; 'rooftop catalog list' lists them", name)
}

// checkCatalog reports every error of a file, with line and field.
func checkCatalog(w *cli.World, path string) error {
	text, err := cli.ReadFile(path, cli.MaxCatalogFile)
	if err != nil {
		return cli.Usagef("catalog check: %w", err)
	}
	problems := catalog.Default().Check(bytes.NewReader(text), path)
	for _, p := range problems {
		fmt.Fprintln(w.Stderr, cli.Printable(p.Error()))
	}
	if len(problems) > 0 {
		return cli.Exit(cli.ExitError)
	}
	_, err = fmt.Fprintf(w.Stdout, "%s: ok\n", path)
	return err
}
