package document_test

import (
	"io"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/narrate"
	"github.com/rooftop-dev/rooftop/cmd/internal/reference"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/rules"
)

// Pages and documents of one subject are tested side by side on the same fixtures.

// Options say how a diagnosis is written.
type Options struct {
	render.Options
	Classic bool
}

func plainText(width int) Options { return Options{Options: render.Options{Width: width}} }

func WritePlain(w io.Writer, d *engine.Diagnosis, o Options) error {
	return render.Text(w, tuning.Diagnosis(d, tuning.Options{Verbose: o.Verbose, Classic: o.Classic}), o.Options)
}

func WriteDelta(w io.Writer, d *effect.Delta, predictions []engine.Prediction, o Options) error {
	return render.Text(w, tuning.Delta(d, predictions), o.Options)
}

func WriteRun(w io.Writer, s *loop.Snapshot, files []string, o Options) error {
	return narrate.WriteRun(w, s, files, o.Options)
}

func WriteRunMarkdown(w io.Writer, s *loop.Snapshot) error {
	return render.Markdown(w, tuning.Report(s))
}

func WriteRunHTML(w io.Writer, s *loop.Snapshot) error { return render.HTML(w, tuning.Report(s)) }

func NewNarrator(w io.Writer, o Options) *narrate.Narrator { return narrate.NewNarrator(w, o.Options) }

type (
	Ceiling    = tuning.HardwareCeiling
	Check      = tuning.Check
	Purpose    = tuning.Purpose
	Doctor     = tuning.Doctor
	PastRun    = tuning.PastRun
	PastChange = tuning.PastChange
	Recovered  = tuning.Recovered
	Vocabulary = reference.Vocabulary
	Follower   = narrate.Follower
)

const (
	CheckOK     = tuning.CheckOK
	CheckWarn   = tuning.CheckWarn
	CheckBad    = tuning.CheckBad
	CheckAbsent = tuning.CheckAbsent
	PastCutOff  = tuning.PastCutOff
	PastEnded   = tuning.PastEnded
	Simulated   = tuning.Simulated
	nbsp        = figure.NBSP

	FormatMarkdown = "markdown"
	FormatJSON     = "json"
	FormatHTML     = "html"
)

func asText[T any](build func(T) *page.Page) func(io.Writer, T, Options) error {
	return func(w io.Writer, v T, o Options) error { return render.Text(w, build(v), o.Options) }
}

var (
	WriteJSON        = document.WriteDiagnosis
	WriteRunJSON     = document.WriteRun
	ReadRun          = document.ReadRun
	NewEvents        = document.NewEvents
	CeilingInputs    = tuning.CeilingInputs
	WriteCeilingJSON = document.WriteCeiling
	WriteDoctorJSON  = document.WriteDoctor
	WriteDoctor      = asText(tuning.Doctor.Page)
	WriteRecovered   = asText((*tuning.Recovered).Page)
	WriteHistory     = asText(tuning.History)
	WriteGPUs        = asText(reference.GPUs)
	WriteModels      = asText(reference.Models)
	WriteGPU         = asText(reference.GPU)
	WriteModel       = asText(reference.Model)
	WriteExplanation = asText(reference.Explanation)
	WriteTerm        = asText(reference.Term)
)

func WriteCeilingPlain(w io.Writer, c *Ceiling, o Options) error {
	return render.Text(w, tuning.Ceiling(c, tuning.Options{Verbose: o.Verbose, Classic: o.Classic}), o.Options)
}

func WriteIndex(w io.Writer, findings []rules.Explanation, words []Vocabulary, metrics []catalog.Metric, o Options) error {
	return render.Text(w, reference.Index(findings, words, metrics), o.Options)
}

func WriteMetric(w io.Writer, m catalog.Metric, client []string, o Options) error {
	return render.Text(w, reference.Metric(catalog.EngineOf(catalog.VLLM), m, client), o.Options)
}

func WritePastRun(w io.Writer, r *PastRun, format string) error {
	switch format {
	case FormatJSON:
		return document.WritePastRun(w, r)
	case FormatHTML:
		return render.HTML(w, tuning.PastReport(r))
	}
	return render.Markdown(w, tuning.PastReport(r))
}
