package simbench

import (
	"encoding/json"
	"math"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/report"
)

// BenchSchema names the document of a bench.
const BenchSchema = "rooftop.bench/v1"

// document is a bench as JSON. Absent figures are null.
type document struct {
	Schema    string           `json:"schema"`
	Simulated bool             `json:"simulated"`
	Summary   string           `json:"summary"`
	Rows      []documentRow    `json:"scenarios"`
	Census    []documentCensus `json:"recommended"`
}

type documentCensus struct {
	Advice  string         `json:"advice"`
	Count   int            `json:"count"`
	Tried   int            `json:"tried"`
	Helped  int            `json:"helped"`
	Harmed  int            `json:"harmed"`
	Refused int            `json:"refused"`
	Untried map[string]int `json:"untried"` // by reason
}

type documentRow struct {
	Case      string          `json:"case"`
	Scenario  string          `json:"scenario"`
	Story     string          `json:"story"`
	Server    string          `json:"server"`
	GPU       string          `json:"gpu"`
	Truth     documentTruth   `json:"truth"`
	Error     string          `json:"error,omitempty"`
	Right     *bool           `json:"right"` // null without a truth to hold the answer against
	Faults    []string        `json:"faults"`
	Gap       string          `json:"gap,omitempty"`
	Finding   string          `json:"finding"`
	Advice    string          `json:"advice"`
	Metrics   map[string]num  `json:"metrics"`
	Own       *documentTrial  `json:"own_change"`
	Untried   string          `json:"own_change_untried,omitempty"` // why
	Remedy    *documentTrial  `json:"remedy"`
	Wrong     *documentTrial  `json:"wrong_remedy"`
	Virtual   float64         `json:"virtual_s"`
	Wall      float64         `json:"wall_s"`
	Diagnosis json.RawMessage `json:"diagnosis,omitempty"`
}

type documentTruth struct {
	Outcomes []string `json:"outcome"`
	Findings []string `json:"finding"`
	Kinds    []string `json:"kind"`
	Flags    []string `json:"flag"`
}

type documentTrial struct {
	Change     string          `json:"change"`
	Refused    string          `json:"refused,omitempty"`
	Helps      bool            `json:"helps"`
	Held       bool            `json:"held"`
	Throughput num             `json:"tokens_per_s_change"`
	TTFT       num             `json:"ttft_p99_change"`
	Checks     []documentCheck `json:"checks"`
	Metrics    map[string]num  `json:"metrics"`
}

type documentCheck struct {
	Expect string `json:"expect"`
	Before num    `json:"before"`
	After  num    `json:"after"`
	Holds  bool   `json:"holds"`
}

// num is a number that is null where it is none.
type num float64

// MarshalJSON implements json.Marshaler.
func (n num) MarshalJSON() ([]byte, error) {
	if v := float64(n); !math.IsNaN(v) && !math.IsInf(v, 0) {
		return json.Marshal(v)
	}
	return []byte("null"), nil
}

// Document returns rows as one rooftop.bench/v1 object.
func Document(rows []Row) json.Marshaler {
	d := document{Schema: BenchSchema, Simulated: true, Summary: Summary(rows), Rows: []documentRow{}}
	for i := range rows {
		d.Rows = append(d.Rows, rows[i].document())
	}
	d.Census = []documentCensus{}
	for _, c := range TakeCensus(rows) {
		d.Census = append(d.Census, documentCensus(c))
	}
	return marshaler{d}
}

type marshaler struct{ v any }

// MarshalJSON implements json.Marshaler.
func (m marshaler) MarshalJSON() ([]byte, error) { return json.Marshal(m.v) }

func (r *Row) document() documentRow {
	sc := &r.Scenario
	out := documentRow{
		Case: sc.Case, Scenario: sc.Name, Story: sc.Story, Server: sc.Server, GPU: sc.GPU, Gap: sc.Gap,
		Truth: documentTruth{
			Outcomes: some(sc.Truth.Outcomes), Findings: some(sc.Truth.Findings), Kinds: some(sc.Truth.Kinds), Flags: some(sc.Truth.Flags),
		},
		Faults: some(r.Answer.Faults), Virtual: r.Virtual.Seconds(), Wall: r.Wall.Round(time.Millisecond).Seconds(),
	}
	if r.Err != nil {
		out.Error = r.Err.Error()
		return out
	}
	if r.Judged() {
		right := r.Right()
		out.Right = &right
	}
	out.Finding, out.Advice, out.Untried = r.Answer.Finding, r.Answer.Advice, r.Untried
	out.Metrics = numbers(r.Base.Metrics)
	out.Own, out.Remedy, out.Wrong = r.Own.document(), r.Remedy.document(), r.Wrong.document()
	if text, err := report.Document(&r.Base.Diagnosis).MarshalJSON(); err == nil {
		out.Diagnosis = text
	}
	return out
}

func (t *Trial) document() *documentTrial {
	if !t.Made {
		return nil
	}
	out := &documentTrial{
		Change: t.Change, Refused: refusal(t), Helps: t.Helps(), Held: t.Held(),
		Throughput: num(t.Throughput), TTFT: num(t.TTFT), Checks: []documentCheck{}, Metrics: numbers(t.Outcome.Metrics),
	}
	for _, c := range t.Checks {
		out.Checks = append(out.Checks, documentCheck{c.String(), num(c.Before), num(c.After), c.Holds})
	}
	return out
}

func numbers(m map[string]float64) map[string]num {
	out := make(map[string]num, len(m))
	for k, v := range m {
		out[k] = num(v)
	}
	return out
}

// some is never nil: an empty list is written as one.
func some(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
