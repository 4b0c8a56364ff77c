package vllmsim

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"
)

// kind is the type of a family.
type kind uint8

const (
	gauge kind = iota
	counter
	histo
)

var (
	kindNames = []string{"gauge", "counter", "histogram"}
	cellNames = strings.Fields(`zero one running waiting capacity deferred kv_usage queries hits preemptions
		prompt computed cached generation stop length error`)
	histNames = strings.Fields(`prompt_tokens generation_tokens iteration_tokens max_generation_tokens n max_tokens
		ttft itl tpot e2e queue inference prefill decode preemptions prefill_computed`)
)

func (k kind) String() string { return kindNames[k] }

// UnmarshalText implements [encoding.TextUnmarshaler], as those below do.
func (k *kind) UnmarshalText(text []byte) error { return unmarshalName(k, kindNames, text) }
func (c *cell) UnmarshalText(text []byte) error { return unmarshalName(c, cellNames, text) }
func (h *hist) UnmarshalText(text []byte) error { return unmarshalName(h, histNames, text) }

func unmarshalName[T ~uint8](into *T, names []string, text []byte) error {
	i := slices.Index(names, string(text))
	if i < 0 {
		return fmt.Errorf("%q is none of %s", text, strings.Join(names, ", "))
	}
	*into = T(i)
	return nil
}

// child is one series of each engine, besides the labels that all have.
type child struct {
	Value string `yaml:"value"` // of the family's extra label
	Cell  cell   `yaml:"cell"`
	Since int    `yaml:"since"` // minor release; 0 means that of the family
}

// family is one of the engine's families, as PrometheusStatLogger creates it.
type family struct {
	Name       string    `yaml:"name"` // as in vLLM's source; the page appends _total to a counter's name
	Help       string    `yaml:"help"`
	Kind       kind      `yaml:"kind"`
	Since      int       `yaml:"since"` // minor releases, inclusive; 0 means no bound
	Until      int       `yaml:"until"`
	Cell       cell      `yaml:"cell"`  // of a family without an extra label
	Label      string    `yaml:"label"` // extra label; "" is none
	Children   []child   `yaml:"children"`
	Hist       hist      `yaml:"hist"`
	Buckets    []float64 `yaml:"buckets"`     // bounds of a histogram in seconds or counts, without +Inf; nil means those of tokens
	NoEngine   bool      `yaml:"no_engine"`   // has no engine label
	PerProcess int       `yaml:"per_process"` // last minor release in which a multiprocess page has it once per API server
}

//go:embed families.yaml
var familiesYAML []byte

// families returns the families of the embedded file, which tests check.
var families = sync.OnceValue(func() []family {
	var list []family
	dec := yaml.NewDecoder(bytes.NewReader(familiesYAML))
	dec.KnownFields(true)
	if err := dec.Decode(&list); err != nil {
		panic(fmt.Sprintf("page: families.yaml: %v", err))
	}
	for i := range list {
		if f := &list[i]; f.Label == "" {
			f.Children = []child{{Cell: f.Cell}}
		}
	}
	return list
})

// inBounds reports whether a release is within since and until; 0 means no bound.
func inBounds(release, since, until int) bool {
	return release >= since && (until == 0 || release <= until)
}

// wire returns the name of a family on the page.
func (f *family) wire() string {
	if f.Kind == counter {
		return f.base() + "_total"
	}
	return f.Name
}

// base returns the name to which _created is appended: prometheus_client removes _total from a counter's
// name.
func (f *family) base() string {
	if f.Kind == counter {
		return strings.TrimSuffix(f.Name, "_total")
	}
	return f.Name
}
