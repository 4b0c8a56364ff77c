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

// Catalog holds data about GPUs, CPUs, models, flags and metrics. It is immutable and safe for
// concurrent use; With returns a new one. Each part is parsed at its first use.
type Catalog struct {
	gpus    func() gpuIndex
	cpus    func() cpuIndex
	models  func() modelIndex
	flags   func() flagTable
	metrics func() []Metric
}

// embedded is the catalog of the embedded files. Tests check that they are valid, so that an error
// panics.
var embedded = Catalog{
	gpus:    sync.OnceValue(func() gpuIndex { return newGPUIndex(load[struct{ GPUs []GPU }]("gpus").GPUs, 0) }),
	cpus:    sync.OnceValue(func() cpuIndex { return newCPUIndex(load[struct{ CPUs []CPU }]("cpus").CPUs, 0) }),
	models:  sync.OnceValue(func() modelIndex { return newModelIndex(load[struct{ Models []Model }]("models").Models, 0) }),
	flags:   sync.OnceValue(func() flagTable { return newFlagTable(load[flagFile]("vllm-flags")) }),
	metrics: sync.OnceValue(func() []Metric { return load[struct{ Metrics []Metric }]("vllm-metrics").Metrics }),
}

// Default returns the embedded catalog.
func Default() *Catalog { return &embedded }

// GPUs returns all GPUs: the user's, then the embedded ones, each in file order.
func (c *Catalog) GPUs() []GPU { return slices.Clone(c.gpus().entries) }

// Models returns all models: the user's, then the embedded ones, each in file order.
func (c *Catalog) Models() []Model { return slices.Clone(c.models().entries) }

func load[T any](name string) T {
	raw, err := data.ReadFile("data/" + name + ".yaml")
	if err != nil {
		panic(fmt.Sprintf("catalog: %v", err))
	}
	v, err := decode[T](raw)
	if err != nil {
		panic(fmt.Sprintf("catalog: %s.yaml: %v", name, err))
	}
	return v
}

func decode[T any](raw []byte) (T, error) {
	var v T
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	err := dec.Decode(&v)
	return v, err
}
