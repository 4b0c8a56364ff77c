package report

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

//go:embed run.html
var runPageHTML string

// WriteRunHTML writes the whole run as one HTML file with its plots as SVG inside.
// It needs nothing else: no script, no font, no address; the reader's browser is
// told to load none. Texts of a server are escaped where they stand.
func WriteRunHTML(w io.Writer, s *engine.Snapshot) error {
	return newDossier(s).html(w, s.Version, plots(s))
}

func (d *dossier) html(w io.Writer, version string, plots []figureOf) error {
	t, err := template.New("run").Parse(runPageHTML)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	err = t.Execute(&b, struct {
		*dossier
		Mark    string
		Version string
		Frame   frame
		Plots   []figureOf
	}{d, Simulated, safe(version), drawn(), plots})
	if err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}

// plots are the pictures of a run.
func plots(s *engine.Snapshot) []figureOf {
	return []figureOf{
		timePlot(s, "throughput", "output, tok/s", rateUnit, func(p *engine.Point) stat.Opt { return p.Tokens }),
		timePlot(s, "ttft", "time to first token, p99", "s", func(p *engine.Point) stat.Opt { return p.TTFT }),
		rooflinePlot(s),
	}
}

// frame is the geometry that plots share, as the template needs it.
type frame struct {
	Width, Height            string
	Left, Right, Top, Bottom string // edges of what is drawn
	InnerWidth, InnerHeight  string
	TickX, TickY, Title      string // where labels stand
}

func drawn() frame {
	return frame{
		Width: coordinate(frameWidth), Height: coordinate(frameHeight),
		Left: coordinate(frameLeft), Right: coordinate(frameWidth - frameRight), Top: coordinate(frameTop), Bottom: coordinate(frameHeight - frameBottom),
		InnerWidth: coordinate(frameWidth - frameLeft - frameRight), InnerHeight: coordinate(frameHeight - frameTop - frameBottom),
		TickX: coordinate(frameLeft - 8), TickY: coordinate(frameHeight - frameBottom + 18), Title: coordinate(frameHeight - 6),
	}
}
