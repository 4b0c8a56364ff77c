package report

import (
	"io"

	"github.com/rooftop-dev/rooftop/engine"
)

// WriteRun writes what a run of the loop came to, in at most a screen of text:
// the best configuration, each iteration in a line, what is left to do, and the
// files that say more.
func WriteRun(w io.Writer, s *engine.Snapshot, files []string, o Options) error { return nil }

// WriteRunMarkdown writes the whole run as Markdown.
func WriteRunMarkdown(w io.Writer, s *engine.Snapshot) error { return nil }

// WriteRunJSON writes the whole run as one rooftop.run/v1 object.
func WriteRunJSON(w io.Writer, s *engine.Snapshot) error { return nil }

// WriteRunHTML writes the whole run as one HTML file with its plots as SVG inside,
// which needs nothing else.
func WriteRunHTML(w io.Writer, s *engine.Snapshot) error { return nil }
