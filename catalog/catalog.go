package catalog

import (
	"bytes"
	"embed"
	"fmt"
	"slices"
	"sync"

	"gopkg.in/yaml.v3"
)

//go:embed data/*.yaml
var data embed.FS

// Catalog holds data about GPUs, CPUs and models. It is immutable and safe for concurrent use; With
// returns a new one. Each part is parsed at its first use.
type Catalog struct {
	gpus   func() index[GPU]
	cpus   func() index[CPU]
	models func() index[Model]
}

// embedded is the catalog of the embedded files. Tests check that they are valid, so that an error
// panics.
var embedded = Catalog{
	gpus:   sync.OnceValue(func() index[GPU] { return newGPUIndex(loaded[struct{ GPUs []GPU }]("gpus").GPUs, 0) }),
	cpus:   sync.OnceValue(func() index[CPU] { return newCPUIndex(loaded[struct{ CPUs []CPU }]("cpus").CPUs, 0) }),
	models: sync.OnceValue(func() index[Model] { return newModelIndex(loaded[struct{ Models []Model }]("models").Models, 0) }),
}

// Default returns the embedded catalog.
func Default() *Catalog { return &embedded }

// GPUs returns all GPUs: the user's, then the embedded ones, each in file order.
func (c *Catalog) GPUs() []GPU { return slices.Clone(c.gpus().entries) }

// Models returns all models: the user's, then the embedded ones, each in file order.
func (c *Catalog) Models() []Model { return slices.Clone(c.models().entries) }

func loaded[T any](name string) T {
	var v T
	load(name, &v)
	return v
}

func load(name string, to any) {
	raw, err := data.ReadFile("data/" + name + ".yaml")
	if err != nil {
		panic(fmt.Sprintf("catalog: %v", err))
	}
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	if err := dec.Decode(to); err != nil {
		panic(fmt.Sprintf("catalog: %s.yaml: %v", name, err))
	}
}
