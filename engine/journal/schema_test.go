package journal

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

func TestRecordsMatchSchema(t *testing.T) {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s, err := c.Compile(filepath.Join("..", "..", "testdata", "schema", "journal.v1.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	valid := func(data []byte) error {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		return s.Validate(v)
	}
	w := &world{rng: rand.New(rand.NewPCG(1, 1)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), mode: "attach"}
	w.live()
	low, mid, log, exit := stat.Some(-0.1), stat.Some(0.2), 0.03, 3
	all := Record{
		Schema: Schema, Seq: 1, Time: w.now, Run: "a", Kind: Verdict, Text: "better", Version: "1.0.0", Mode: "exec", Server: "m at localhost:8000", Command: "vllm serve m",
		Process: &Process{PID: 7, Ticks: 9, Boot: "b"}, Launch: "launch-1.json", Iteration: 2, Revert: true, Changes: []engine.Change{{Flag: "--a", From: "", To: "1"}},
		Predicted: []Predicted{{Metric: "generation_tokens_per_s", Low: low, Mid: mid}}, Direction: "better", Low: low, Mid: mid, High: mid, Log: &log,
		Finding: "concurrency-saturation", Goal: "throughput", Exit: &exit,
	}
	for _, r := range append(w.records, all) {
		line, err := Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := valid(line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	line, err := Encode(all)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string][2]string{
		"another schema":              {Schema, "rooftop.journal/v2"},
		"number 0":                    {`"seq":1`, `"seq":0`},
		"an unknown mode":             {`"mode":"exec"`, `"mode":"magic"`},
		"a verdict without direction": {`"direction":"better",`, ``},
		"a process without ticks":     {`"ticks":9,`, ``},
		"time that is none":           {w.now.Format("2006-01-02T"), "yesterday"},
	} {
		bad := strings.Replace(string(line), c[0], c[1], 1)
		if bad == string(line) || valid([]byte(bad)) == nil {
			t.Errorf("%s: the schema takes %s", name, bad)
		}
	}
}
