package engine

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// cited matches a file of the repository that a document names, whole or by its last
// folders, and one that it links to. NAME and ID represent any name.
var cited = regexp.MustCompile("`([a-z][\\w./-]*\\.(?:go|txt|yaml|json|md))`|\\]\\(([\\w./-]+\\.md)")

func TestDocumentsNameFilesThatExist(t *testing.T) {
	var files []string
	root := os.DirFS("..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != "." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		files = append(files, "/"+path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	documents, _ := filepath.Glob("../docs/*.md")
	more, _ := filepath.Glob("../docs/dev/*.md")
	for _, document := range append(append(documents, more...), "../README.md", "../ARCHITECTURE.md", "../CONTRIBUTING.md") {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range cited.FindAllStringSubmatch(string(text), -1) {
			name := strings.ReplaceAll(match[1]+match[2], "../", "")
			if strings.Contains(name, "NAME") || strings.Contains(name, "ID.") {
				continue
			}
			if !slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix(f, "/"+name) }) {
				t.Errorf("%s names %s, which is not in the repository", document, name)
			}
		}
	}
}
