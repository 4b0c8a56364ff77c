package tracing

import (
	"fmt"
	"os"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// missingFile returns the error for a recording that does not exist. It mentions the partial
// recording of a trace that was killed or is still running, if there is one.
func missingFile(path string, err error) error {
	if partial := partialPath(path); partial != path && hasContent(partial) {
		return fmt.Errorf("%w; %s exists, with the data of a trace that was killed or is still running: '%s' shows it", err, partial, traceCommand(partial))
	}
	return err
}

// traceCommand is what shows a recording.
func traceCommand(path string) string { return launch.Line("rooftop", "trace", path) }

// openRegular opens a regular file for reading.
func openRegular(path string) (*os.File, error) {
	f, err := cli.Open(path)
	if err != nil {
		return nil, cli.Usagef("trace: %w", missingFile(path, err))
	}
	if info, err := f.Stat(); err != nil || info.IsDir() || info.Size() > maxRecording {
		_ = f.Close()
		return nil, cli.Usagef("trace: %s is a directory, or larger than %d MiB: name a recording of 'rooftop trace --save'", path, maxRecording>>20)
	}
	return f, nil
}
