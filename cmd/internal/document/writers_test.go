package document_test

import (
	"io"

	"github.com/rooftop-dev/rooftop/cmd/internal/autopilot"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

// Pages and documents of one subject are tested side by side on the same fixtures.

func WritePlain(w io.Writer, d *engine.Diagnosis, o render.Options) error {
	return render.Text(w, tuning.Diagnosis(d, tuning.Options{Verbose: o.Verbose}), o)
}

func WriteRun(w io.Writer, s *loop.Snapshot, files []string, o render.Options) error {
	return autopilot.WriteRun(w, s, files, o)
}

func WriteRunMarkdown(w io.Writer, s *loop.Snapshot) error {
	return render.Markdown(w, tuning.Report(s))
}

func WriteRunHTML(w io.Writer, s *loop.Snapshot) error { return render.HTML(w, tuning.Report(s)) }
