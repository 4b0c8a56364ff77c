package main

import (
	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/collect/ggml"
	"github.com/rooftop-dev/rooftop/engine/page"
)

// versionDocument is a rooftop.version/v1 document.
type versionDocument struct {
	Schema string `json:"schema"`
	cli.Build
	Compiled struct {
		NVML bool `json:"nvml"`
		EBPF bool `json:"ebpf"`
	} `json:"compiled"`
}

func newVersion(w *cli.World) *cobra.Command {
	var out cli.Output
	c := newCommand("version", noArgs, func(*cobra.Command, []string) error {
		v := versionDocument{Schema: "rooftop.version/v1", Build: cli.ThisBuild()}
		v.Compiled.NVML, v.Compiled.EBPF = nvmlBuilt, ggml.Built
		return cli.Print(w, &out, &v, cli.Text(versionPage), cli.Document)
	})
	g := cli.GroupFlags(c)
	out.Register(g, "")
	return g.Done()
}

// versionPage returns what a bug report needs.
func versionPage(v *versionDocument) *page.Page {
	commit := "not known: built from a module or without the history of a checkout"
	if v.Commit != "" {
		commit = v.Commit + " of " + v.Date
	}
	if v.Modified {
		commit += ", with changes"
	}
	nvml, ebpf := "compiled in", "compiled in"
	if !v.Compiled.NVML {
		nvml = "not compiled in (built without cgo); nvidia-smi is used where it is present"
	}
	if !v.Compiled.EBPF {
		ebpf = "not compiled in: rooftop trace needs Linux on amd64 or arm64"
	}
	var f page.Facts
	f.Add("commit", page.Body, commit)
	f.Add("built", page.Body, "with "+v.Go+" for "+v.Platform)
	f.Add("NVML", page.Body, nvml)
	f.Add("eBPF", page.Body, ebpf)
	title := "rooftop " + v.Version
	return &page.Page{Title: title, Sections: []page.Section{{ID: "version", Title: title, Nodes: []page.Node{f}}}}
}
