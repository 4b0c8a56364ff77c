package fleetscan

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/engines"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/engine/longtest"
)

// A diagnosis from the series that a fleet is read by is the diagnosis from all series.
func TestTheSeriesOfADiagnosisAreEnough(t *testing.T) {
	needed := map[string]bool{}
	for _, name := range engines.DiagnosisSeries() {
		needed[name] = true
	}
	kept, all := 0, 0
	named := regexp.MustCompile(`^[a-zA-Z0-9_:]+`)
	keeps := func(line string) bool {
		name := named.FindString(line)
		for _, g := range catalog.Engines() {
			for _, prefix := range g.Families {
				if bare, ours := strings.CutPrefix(name, prefix); ours {
					all++
					if !needed[bare] {
						return false
					}
					kept++
				}
			}
		}
		return true
	}
	var files []string
	for _, pattern := range []string{"*.gz", "real/*.gz", "real/*/*.gz"} { // the last are of other engines than vLLM
		some, err := filepath.Glob(filepath.Join("../../../testdata/recordings", pattern))
		if err != nil || len(some) == 0 {
			t.Fatalf("no recordings %s: %v", pattern, err)
		}
		files = append(files, some...)
	}
	compared := 0
	for i, path := range files {
		if strings.HasSuffix(path, ".jsonl.gz") || !longtest.Tests && i%9 != 0 { // the former are of operators
			continue
		}
		whole, err := os.ReadFile(path)
		must(t, err)
		want, ok := replayed(t, bytes.NewReader(whole))
		if !ok {
			continue // of a session without a diagnosis
		}
		compared++
		t.Run(filepath.Base(path), func(t *testing.T) {
			got, _ := replayed(t, thinned(t, bytes.NewReader(whole), keeps))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-all series +those needed):\n%s", diff)
			}
		})
	}
	if least := map[bool]int{true: 86, false: 9}[longtest.Tests]; compared < least {
		t.Errorf("only %d recordings were compared", compared)
	}
	t.Logf("%d of %d lines are needed", kept, all)
}

// thinned returns a recording whose pages have only some lines.
func thinned(t *testing.T, whole io.Reader, keep func(line string) bool) io.Reader {
	t.Helper()
	z, err := gzip.NewReader(whole)
	must(t, err)
	var b bytes.Buffer
	out, err := gzip.NewWriterLevel(&b, gzip.NoCompression)
	must(t, err)
	decoder, encoder := json.NewDecoder(z), json.NewEncoder(out)
	for decoder.More() {
		var line, poll map[string]json.RawMessage
		must(t, decoder.Decode(&line))
		var body string
		var some strings.Builder
		if json.Unmarshal(line["poll"], &poll) == nil && json.Unmarshal(poll["body"], &body) == nil {
			for l := range strings.Lines(body) {
				if keep(l) {
					some.WriteString(l)
				}
			}
			poll["body"] = encoded(t, some.String())
			line["poll"] = encoded(t, poll)
		}
		must(t, encoder.Encode(line))
	}
	must(t, out.Close())
	return &b
}

// replayed returns the document of the diagnosis of a recording; false if there is none.
func replayed(t *testing.T, r io.Reader) (text string, ok bool) {
	t.Helper()
	recording, err := session.OpenRecording(r)
	if err != nil {
		return "", false
	}
	d, err := session.Replay(recording, "test")
	must(t, err)
	var b strings.Builder
	must(t, document.WriteDiagnosis(&b, &d))
	return b.String(), true
}

func encoded(t *testing.T, v any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(v)
	must(t, err)
	return text
}
