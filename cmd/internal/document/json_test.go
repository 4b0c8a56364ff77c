package document_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// schema compiles a schema of testdata/schema, formats included.
func schema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s, err := c.Compile(filepath.Join("..", "..", "..", "testdata", "schema", name))
	must(t, err)
	return s
}

// decoded parses a document for the validator.
func decoded(t *testing.T, b []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return v
}

func diagnosed(t *testing.T, d *engine.Diagnosis) []byte {
	t.Helper()
	var b bytes.Buffer
	must(t, document.WriteDiagnosis(&b, d))
	return b.Bytes()
}

func TestJSONMatchesSchema(t *testing.T) {
	s := schema(t, "diagnosis.v1.schema.json")
	cases := states()
	cases["empty"] = func() *engine.Diagnosis { return &engine.Diagnosis{Outcome: engine.OutcomeNotEvaluable} }
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			if err := s.Validate(decoded(t, diagnosed(t, cases[name]()))); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSchemaRejects(t *testing.T) {
	checkRejects(t, "diagnosis.v1.schema.json", string(diagnosed(t, kvBound())), []replacement{
		{"another schema", `"rooftop.diagnosis/v1"`, `"rooftop.diagnosis/v2"`},
		{"a missing fact", `"max_num_seqs": {`, `"max_seqs": {`},
		{"a missing quantity", `"ttft_p99_s": {`, `"ttft_p95_s": {`},
		{"an unknown outcome", `"outcome": "recommendation"`, `"outcome": "fine"`},
		{"a recommendation without its outcome", `"outcome": "recommendation"`, `"outcome": "healthy"`},
		{"an unknown state", `"state": "fired"`, `"state": "firing"`},
		{"an unknown kind", `"kind": "flag"`, `"kind": "config"`},
		{"an unknown source of a fact", `"source": "cmdline"`, `"source": "guess"`},
		{"an unknown origin of a quantity", `"source": "derived"`, `"source": "guess"`},
		{"null without its reason", `"reason": "only the V0`, `"cause": "only the V0`},
		{"a ratio in percent", `"value": 0.98458`, `"value": 98.458`},
		{"a number in quotes", `"value": 381.71774768353515`, `"value": "381.7"`},
		{"a slot count with a fraction", `"value": 36,`, `"value": 36.5,`},
		{"an efficiency above one", `"efficiency": 0.65`, `"efficiency": 1.04`},
		{"an unknown binding", `"binding": "weights"`, `"binding": "luck"`},
		{"a time without its zone", `"started": "2026-01-05T09:02:02.003Z"`, `"started": "2026-01-05 09:02"`},
		{"a flag without dashes", `"flag": "--kv-cache-dtype"`, `"flag": "kv-cache-dtype"`},
		{"no windows", `"windows": {`, `"window": {`},
		{"an unread GPU field left out", `"sm_clock_mhz": {
        "value": 2040`, `"sm_clock": {
        "value": 2040`},
	})
}

func TestJSONNamesEveryQuantity(t *testing.T) {
	d := slots()
	d.Measured = []engine.NamedQuantity{
		{Name: "new_quantity", Quantity: engine.Quantity{Value: some(1), Unit: "req", Source: engine.Measured}},
		{Name: "waiting_mean", Quantity: engine.Quantity{Value: some(math.NaN()), Unit: "req"}},
	}
	b := diagnosed(t, d)
	at := bytes.Index(b, []byte(`"measured": {`))
	for _, name := range append(slices.Clone(engine.MeasuredNames[:]), "new_quantity") {
		next := bytes.Index(b[at:], []byte("\n    \""+name+"\": {"))
		if next < 0 {
			t.Fatalf("%s is not in measured, or not in its place", name)
		}
		at += next
	}
	var doc struct {
		Measured map[string]struct {
			Value  *float64
			Unit   string
			Source string
			Reason string
		}
	}
	must(t, json.Unmarshal(b, &doc))
	if q := doc.Measured["waiting_mean"]; q.Value != nil || q.Reason != "not a finite number" {
		t.Errorf("NaN became %+v", q)
	}
	if q := doc.Measured["ttft_mean_s"]; q.Value != nil || q.Reason == "" || q.Unit != "s" {
		t.Errorf("an omitted quantity became %+v", q)
	}
}

func TestJSONNeverHoldsNonFinite(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		d := kvBound()
		for i := range d.Measured {
			d.Measured[i].Value = stat.Some(v)
		}
		d.Facts.KVCapacityTokens.Value = v
		d.Ceiling.Classic.DecodeTokensPerS = stat.Some(v)
		d.Ceiling.Physical.TermsS.KV = v
		d.Findings[0].Score = v
		d.Findings[0].Evidence = []engine.Evidence{{Value: stat.Some(v), Limit: stat.Some(v)}}
		d.Recommendation.Predicted[0].Mid = stat.Some(v)
		d.GPUs[0].Peak[engine.GPUPowerW] = stat.Some(v)
		decoded(t, diagnosed(t, d)) // fails if it is not valid JSON
	}
}
