package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/catalog"
)

// More slots of llama.cpp need a larger context with them where it is divided among them, and keep sharing it where
// they share it.
func TestWithPool(t *testing.T) {
	slots := []Change{{Flag: "--parallel", From: "2", To: "8"}}
	facts := func(engine string, capacity float64, each, override int, launch string) *Facts {
		f := &Facts{
			Engine: Know(engine, FromMetrics, ""), MaxNumSeqs: Know(2, FromCmdline, ""), KVCapacityTokens: Know(capacity, FromMetrics, ""),
			MaxModelLen: Know(each, FromServer, ""), Launch: launch,
		}
		if override > 0 {
			f.NumGPUBlocksOverride = Know(override, FromCmdline, "")
		}
		return f
	}
	for _, tc := range []struct {
		name    string
		facts   *Facts
		changes []Change
		want    []Change // beside the changes
	}{
		{"vLLM's slots share one pool", facts(catalog.VLLM, 8192, 4096, 0, ""), []Change{{Flag: "--max-num-seqs", From: "2", To: "8"}}, nil},
		{"a context divided among the slots", facts(catalog.LlamaCPP, 8192, 4096, 8192, "llama-server -np 2 -c 8192"), slots, []Change{{Flag: "--ctx-size", From: "8192", To: "32768"}}},
		{"the model's own context", facts(catalog.LlamaCPP, 8192, 4096, 0, "llama-server -np 2"), slots, []Change{{Flag: "--ctx-size", To: "32768"}}},
		{"a context that is shared because the slots were the server's choice", facts(catalog.LlamaCPP, 8192, 8192, 8192, "llama-server -c 8192"), slots, []Change{{Flag: "--kv-unified", To: "on"}}},
		{"a context that is shared by its flag", facts(catalog.LlamaCPP, 8192, 8192, 8192, "llama-server -np 2 -c 8192 --kv-unified"), slots, nil},
		{"another change", facts(catalog.LlamaCPP, 8192, 4096, 8192, ""), []Change{{Flag: "--cache-prompt", To: "on"}}, nil},
		{"a context that changes already", facts(catalog.LlamaCPP, 8192, 4096, 8192, ""), append([]Change{{Flag: "--ctx-size", From: "8192", To: "65536"}}, slots...), nil},
	} {
		got, _ := tc.facts.WithPool(tc.changes)
		if d := cmp.Diff(append(append([]Change(nil), tc.changes...), tc.want...), got); d != "" {
			t.Errorf("%s: %s", tc.name, d)
		}
	}
}
