package document_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	parts    = regexp.MustCompile(`(?m)^(?:\$ .*|--- .*|=== .*)\n`) // what stands between outputs in a file of the corpus
	schemaOf = regexp.MustCompile(`"schema": ?"rooftop\.(\w+)/(v\d)"`)
)

// corpusDocuments returns the JSON documents of the corpus by schema.
func corpusDocuments(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir(testdataFile("corpus"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		list := parts.Split(string(text), -1)
		if filepath.Ext(path) == ".jsonl" {
			list = strings.SplitAfter(string(text), "\n")
		}
		for _, part := range list {
			if m := schemaOf.FindStringSubmatch(part); m != nil && strings.HasPrefix(part, "{") {
				name := m[1] + "." + m[2] + ".schema.json"
				found[name] = append(found[name], part)
			}
		}
		return nil
	})
	must(t, err)
	return found
}

// TestCorpusMatchesSchemas validates every document that a command of the corpus prints.
func TestCorpusMatchesSchemas(t *testing.T) {
	checked := 0
	for name, list := range corpusDocuments(t) {
		if _, err := os.Stat(testdataFile("schema", name)); err != nil || name == "version.v1.schema.json" { // of the build
			continue
		}
		s := schema(t, name)
		for _, doc := range list {
			if err := s.Validate(decoded(t, []byte(doc))); err != nil {
				t.Errorf("%s: %v\n%s", name, err, doc[:min(len(doc), 400)])
			}
			checked++
		}
	}
	if checked < 100 {
		t.Errorf("%d documents, want at least 100", checked)
	}
}
