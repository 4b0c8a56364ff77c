package tracing

import (
	"bytes"
	"fmt"
	"os"
	"regexp"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// headOfFile is how much of a file is read to identify it.
const headOfFile = 16 << 10

// otherFile is a file that is not a recording of a trace.
type otherFile struct {
	what  string // what it is
	opens string // which command or program shows it
}

func (f otherFile) String() string { return "is " + f.what + ": " + f.opens }

// jsonViewer is the hint for files that no command reads.
const jsonViewer = "any JSON viewer shows it"

// schemaOf finds the schema of a document.
var schemaOf = regexp.MustCompile(`"schema"\s*:\s*"([^"]*)"`)

// documents describes documents that may be mistaken for a trace, by schema.
func documents(schema, path string) otherFile {
	switch schema {
	case document.TraceSchema:
		return otherFile{"the document of a trace (--json), which has figures but no events", jsonViewer}
	case optrace.Schema:
		return otherFile{"a recording that is not compressed", fmt.Sprintf("'%s' makes a file of it that '%s' shows", launch.Line("gzip", path), traceCommand(path+".gz"))}
	case session.RecordingSchema:
		return otherFile{"a recording of 'rooftop diagnose --record' or 'tune --record'", fmt.Sprintf("'%s' shows it", launch.Line("rooftop", "replay", path))}
	case document.ProbeSchema:
		return otherFile{"the document of 'rooftop probe'", jsonViewer}
	}
	return otherFile{"a document of " + schema, jsonViewer}
}

// identify identifies a file by its first bytes. known is false if it cannot.
func identify(head []byte, path string) (f otherFile, known bool) {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	lower := bytes.ToLower(head[:min(len(head), 1<<10)])
	begins := func(with string) bool { return bytes.HasPrefix(lower, []byte(with)) }
	json := begins("{") || begins("[")
	switch schema := schemaOf.FindSubmatch(head); {
	case json && (bytes.Contains(head, []byte(`"traceEvents"`)) || begins("[") && bytes.Contains(head, []byte(`"ph"`))):
		return otherFile{"a timeline (--trace)", "ui.perfetto.dev or chrome://tracing opens it"}, true
	case begins("{") && schema != nil:
		return documents(string(schema[1]), path), true
	case json:
		return otherFile{"a JSON file of an unknown program", jsonViewer}, true
	case begins("<!doctype html"), begins("<html"):
		return otherFile{"a page (--html)", "a browser opens it"}, true
	case begins("digraph"), begins("strict digraph"), begins("graph "):
		return otherFile{"a graph in the DOT language (--dot)", fmt.Sprintf("'%s' of Graphviz draws it", launch.Line("dot", "-Tsvg", path))}, true
	}
	return otherFile{}, false
}

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
