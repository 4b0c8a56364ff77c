package document

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

type inner struct {
	Value stat.Opt `json:"value"`
	Unit  string   `json:"unit"`
	Note  string   `json:"note,omitempty"`
}

type sample struct {
	Inner
	*inner
	Schema  string          `json:"schema"`
	Absent  *inner          `json:"absent"`
	Nothing any             `json:"nothing"`
	List    []inner         `json:"list"`
	Map     map[string]int  `json:"map"`
	NaN     float64         `json:"nan"`
	Text    string          `json:"text,omitzero"`
	Given   string          `json:"given,omitzero"`
	Age     time.Duration   `json:"age_s"`
	Never   time.Duration   `json:"never_s,omitzero"`
	Range   [2]float64      `json:"range,omitzero"`
	Cost    time.Duration   `json:"cost_ns"`
	Looks   []time.Duration `json:"looks_s"`
	At      time.Time       `json:"at"`
	Named   Object          `json:"named"`
	Hidden  int             `json:"-"`
}

// Inner is embedded: its members are those of the document.
type Inner struct {
	Deep   float64 `json:"deep"`
	Schema string  `json:"schema"` // replaced
}

const written = `{
  "deep": 0.5,
  "schema": "rooftop.sample/v1",
  "absent": null,
  "nothing": null,
  "list": [],
  "map": {
    "a": 1,
    "b": 2
  },
  "nan": null,
  "text": null,
  "given": "<&>",
  "age_s": 1.5,
  "never_s": null,
  "cost_ns": 20,
  "looks_s": [
    20,
    30
  ],
  "at": "2026-11-22T10:00:00Z",
  "named": {
    "z": {
      "value": 1,
      "unit": "s"
    },
    "a": null
  },
  "points": [1,2]
}
`

func TestWrite(t *testing.T) {
	v := sample{
		Schema: "rooftop.sample/v1", Inner: Inner{0.5, "other"}, Map: map[string]int{"b": 2, "a": 1}, NaN: math.NaN(), Given: "<&>", Age: 1500 * time.Millisecond, Cost: 20,
		Looks: []time.Duration{20 * time.Second, 30 * time.Second}, At: time.Date(2026, 11, 22, 11, 0, 0, 0, time.FixedZone("", 3600)),
		Named: Object{{"z", inner{Value: stat.Some(1), Unit: "s"}}, {"a", stat.Some(math.Inf(1))}},
	}
	for range 2 { // the same each time
		var b bytes.Buffer
		if err := Write(&b, &v, Member{"points", []float64{1, 2}}); err != nil {
			t.Fatal(err)
		}
		if b.String() != written {
			t.Errorf("got %s", b.String())
		}
	}
}

func TestWriteLine(t *testing.T) {
	var b bytes.Buffer
	if err := WriteLine(&b, Object{{"a", 1}, {"b", []stat.Opt{stat.None, stat.Some(2)}}}); err != nil {
		t.Fatal(err)
	}
	if want := "{\"a\":1,\"b\":[null,2]}\n"; b.String() != want {
		t.Errorf("got %s, want %s", b.String(), want)
	}
}

func TestWriteReportsErrors(t *testing.T) {
	if err := Write(&bytes.Buffer{}, Object{{"a", func() {}}}); err == nil {
		t.Error("a function was written")
	}
}
