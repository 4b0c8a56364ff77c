package bench

import (
	"io"
	"time"

	jsondoc "github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/scenarios"
)

// BenchSchema is the schema of the JSON document of a bench.
const BenchSchema = "rooftop.bench/v1"

// document is a bench as JSON. Absent numbers are null.
type document struct {
	Schema    string        `json:"schema"`
	Simulated bool          `json:"simulated"`
	Summary   string        `json:"summary"`
	Rows      []documentRow `json:"scenarios"`
	Census    []Census      `json:"recommended"`
}

type documentRow struct {
	Case      string          `json:"case"`
	Scenario  string          `json:"scenario"`
	Story     string          `json:"story"`
	Server    string          `json:"server"`
	GPU       string          `json:"gpu"`
	Truth     scenarios.Truth `json:"truth"`
	Error     string          `json:"error,omitempty"`
	Right     *bool           `json:"right"` // null without a truth
	Faults    []string        `json:"faults"`
	Gap       string          `json:"gap,omitempty"`
	Finding   string          `json:"finding"`
	Advice    string          `json:"advice"`
	Metrics   any             `json:"metrics"` // by name; null if the scenario did not run
	Own       *documentTrial  `json:"own_change"`
	Untried   string          `json:"own_change_untried,omitempty"` // why
	Remedy    *documentTrial  `json:"remedy"`
	Wrong     *documentTrial  `json:"wrong_remedy"`
	Virtual   time.Duration   `json:"virtual_s"`
	Wall      time.Duration   `json:"wall_s"`
	Diagnosis any             `json:"diagnosis,omitempty"`
}

type documentTrial struct {
	Change          string             `json:"change"`
	Refused         string             `json:"refused,omitempty"`
	Helps           bool               `json:"helps"`
	ExpectationsMet bool               `json:"expectations_met"`
	Throughput      float64            `json:"tokens_per_s_change"`
	TTFT            float64            `json:"ttft_p99_change"`
	Checks          []Check            `json:"checks"`
	Metrics         map[string]float64 `json:"metrics"`
}

// WriteJSON writes rows as one rooftop.bench/v1 document.
func WriteJSON(w io.Writer, rows []Row) error {
	d := document{Schema: BenchSchema, Simulated: true, Summary: Summary(rows), Census: TakeCensus(rows)}
	for i := range rows {
		d.Rows = append(d.Rows, rows[i].document())
	}
	return jsondoc.Write(w, &d)
}

func (r *Row) document() documentRow {
	sc := &r.Scenario
	out := documentRow{
		Case: sc.Case, Scenario: sc.Name, Story: sc.Story, Server: sc.Server, GPU: sc.GPU, Gap: sc.Gap,
		Truth: sc.Truth, Faults: r.Answer.Faults, Virtual: r.Virtual, Wall: r.Wall.Round(time.Millisecond),
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
	out.Metrics, out.Diagnosis = r.Base.Metrics, jsondoc.Diagnosis(&r.Base.Diagnosis)
	out.Own, out.Remedy, out.Wrong = r.Own.document(), r.Remedy.document(), r.Wrong.document()
	return out
}

func (t *Trial) document() *documentTrial {
	if !t.Made {
		return nil
	}
	return &documentTrial{
		Change: t.Change, Refused: refusal(t), Helps: t.Helps(), ExpectationsMet: t.ExpectationsMet(),
		Throughput: t.Throughput, TTFT: t.TTFT, Checks: t.Checks, Metrics: t.Outcome.Metrics,
	}
}
