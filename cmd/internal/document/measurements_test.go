package document_test

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/past"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// A server in each state is compared with itself.
func TestMeasurementsMatchTheirSchemas(t *testing.T) {
	comparison := schema(t, "compare.v1.schema.json")
	for _, name := range slices.Sorted(maps.Keys(states())) {
		m := &past.Measurement{Name: name, Diagnosis: *states()[name]()}
		c := &tuning.PastComparison{Before: m, After: m, Delta: past.Compare(m, m, verdict.Plan{})}
		var b bytes.Buffer
		if err := document.WriteCompare(&b, c); err != nil {
			t.Fatal(err)
		}
		if err := comparison.Validate(decoded(t, b.Bytes())); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
}
