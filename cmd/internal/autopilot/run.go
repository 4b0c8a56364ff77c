package autopilot

import (
	"bytes"
	"io"

	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

// Follower receives the events of a run as they happen. After the first write error it stops
// writing; Err returns that error.
type Follower interface {
	Event(e loop.Event)
	Err() error
}

// Limits of what is printed at the end of a run.
const (
	screenLines      = 24
	fewestIterations = 2 // always listed
	changeLines      = 2 // of a change, so that its values are there on a narrow terminal; 1 where the screen is full
)

// WriteRun prints the result of a run, in at most one screen of text. If there are many iterations,
// it lists the latest.
func WriteRun(w io.Writer, s *loop.Snapshot, files []string, o render.Options) error {
	var b bytes.Buffer
	for n, each := len(s.Iterations), changeLines; ; {
		b.Reset()
		if err := render.Text(&b, tuning.RunSummary(s, files, n, each), o); err != nil {
			return err
		}
		switch {
		case bytes.Count(b.Bytes(), []byte("\n")) <= screenLines:
		case n > fewestIterations:
			n--
			continue
		case each > 1:
			each--
			continue
		}
		break
	}
	_, err := w.Write(b.Bytes())
	return err
}
