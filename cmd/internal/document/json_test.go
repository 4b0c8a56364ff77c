package document_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/engine"
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
