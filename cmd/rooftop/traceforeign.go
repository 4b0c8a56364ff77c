package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"regexp"

	"github.com/rooftop-dev/rooftop/cmd/internal/report"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// headOfFile is how much of a file is looked at to tell what it is.
const headOfFile = 16 << 10

// foreign is a file that is no recording of traces.
type foreign struct {
	what  string // it is
	opens string // which command or program shows it
}

func (f foreign) String() string { return "is " + f.what + ": " + f.opens }

// jsonViewer shows what no command reads.
const jsonViewer = "any JSON viewer shows it"

// schemaOf finds what a document says of itself.
var schemaOf = regexp.MustCompile(`"schema"\s*:\s*"([^"]*)"`)

// documents are those that a trace is mistaken for, by their schema.
func documents(schema, path string) foreign {
	switch schema {
	case report.TraceSchema:
		return foreign{"the document of a trace (--json), which has its figures and not its events", "'rooftop trace compare' holds it against another trace, and " + jsonViewer}
	case report.TraceCompareSchema:
		return foreign{"what 'rooftop trace compare --json' wrote", jsonViewer}
	case optrace.RecordingSchema:
		return foreign{"a recording that is not packed", "'gzip " + path + "' makes one of it that 'rooftop trace " + path + ".gz' shows"}
	case session.RecordingSchema:
		return foreign{"a recording of 'rooftop diagnose --record' or 'tune --record'", "'rooftop replay " + path + "' shows it"}
	case report.ProbeSchema:
		return foreign{"the document of 'rooftop probe'", "'rooftop probe compare' holds it against another, and " + jsonViewer}
	}
	return foreign{"a document of " + schema, jsonViewer}
}

// foreignOf says what a file is by what it begins with, false where that is not known.
func foreignOf(head []byte, path string) (f foreign, known bool) {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	lower := bytes.ToLower(head[:min(len(head), 1<<10)])
	begins := func(with string) bool { return bytes.HasPrefix(lower, []byte(with)) }
	json := begins("{") || begins("[")
	switch schema := schemaOf.FindSubmatch(head); {
	case json && (bytes.Contains(head, []byte(`"traceEvents"`)) || begins("[") && bytes.Contains(head, []byte(`"ph"`))):
		return foreign{"a timeline (--trace)", "ui.perfetto.dev or chrome://tracing opens it"}, true
	case begins("{") && schema != nil:
		return documents(string(schema[1]), path), true
	case json:
		return foreign{"a JSON file, of no command that is known here", jsonViewer}, true
	case begins("<!doctype html"), begins("<html"):
		return foreign{"a page (--html)", "a browser opens it"}, true
	case begins("<svg"), begins("<?xml") && bytes.Contains(lower, []byte("<svg")):
		return foreign{"a picture of the graph (--svg)", "a browser opens it"}, true
	case begins("digraph"), begins("strict digraph"), begins("graph "):
		return foreign{"a graph in the language DOT (--dot)", "'dot -Tsvg " + path + "' of Graphviz draws it"}, true
	}
	return foreign{}, false
}

// absentFile says that the file of a recording is not there, and where what there is of one
// that was cut lies.
func absentFile(path string, err error) error {
	if partial := partialOf(path); partial != path && holds(partial) {
		return fmt.Errorf("%w; %s is there, as far as a trace got that was killed or still goes on: 'rooftop trace %s' shows it", err, partial, partial)
	}
	return err
}

// looked opens a file that is to be read as one of a trace.
func looked(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, usage("trace: %w", absentFile(path, err))
	}
	if info, err := f.Stat(); err != nil || info.IsDir() || info.Size() > maxRecording {
		_ = f.Close()
		return nil, usage("trace: %s is a directory, or larger than %d MiB: name a recording of 'rooftop trace --save'", path, maxRecording>>20)
	}
	return f, nil
}

// opened is a file that is to be read as one of a trace, with what it begins with.
type opened struct {
	*bufio.Reader
	head []byte
	file *os.File
}

// openTraced opens such a file.
func openTraced(path string) (*opened, error) {
	f, err := looked(path)
	if err != nil {
		return nil, err
	}
	buffered := bufio.NewReaderSize(f, headOfFile)
	head, _ := buffered.Peek(headOfFile)
	return &opened{buffered, head, f}, nil
}

// Close closes the file.
func (o *opened) Close() error { return o.file.Close() }
