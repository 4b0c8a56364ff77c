package catalog

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"

	"gopkg.in/yaml.v3"
)

// maxUserFile bounds a user's file, in bytes.
const maxUserFile = 1 << 20

// userFile is the content of a user's file: lists of the same types as the embedded ones.
type userFile struct {
	GPUs   []GPU   `yaml:"gpus"`
	CPUs   []CPU   `yaml:"cpus"`
	Models []Model `yaml:"models"`
}

// With returns a catalog with the entries of a user's YAML file (lists "gpus", "cpus" and "models", of
// the form that `rooftop catalog show` prints) before those of c. An entry replaces one of the same
// name or ID; if entries of both match a name equally, the user's is found. name is the file's name
// in errors, which are those of Check, joined.
func (c *Catalog) With(r io.Reader, name string) (*Catalog, error) {
	file, problems := readUserFile(r, name)
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	out := *c
	out.gpus = sync.OnceValue(func() index[GPU] { old := c.gpus(); return newGPUIndex(old.withUser(file.GPUs)) })
	out.cpus = sync.OnceValue(func() index[CPU] { old := c.cpus(); return newCPUIndex(old.withUser(file.CPUs)) })
	out.models = sync.OnceValue(func() index[Model] { old := c.models(); return newModelIndex(old.withUser(file.Models)) })
	return &out, nil
}

// Check parses a user's file as With does and returns all problems in order of line, each as
// "FILE:LINE: FIELD: problem".
func (c *Catalog) Check(r io.Reader, name string) []error {
	_, problems := readUserFile(r, name)
	return problems
}

func readUserFile(r io.Reader, name string) (userFile, []error) {
	fail := func(format string, args ...any) (userFile, []error) {
		return userFile{}, []error{fmt.Errorf(name+format, args...)}
	}
	raw, err := io.ReadAll(io.LimitReader(r, maxUserFile+1))
	switch {
	case err != nil:
		return fail(": read: %w", err)
	case len(raw) > maxUserFile:
		return fail(": larger than %d bytes", maxUserFile)
	}
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	var doc, next yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return fail(": empty: expected a list \"gpus\", \"cpus\" or \"models\"")
	case err != nil:
		return fail("%s", syntaxError(err))
	}
	switch err := dec.Decode(&next); {
	case err == nil:
		return fail(":%d: a second document: expected one", next.Line)
	case !errors.Is(err, io.EOF):
		return fail("%s", syntaxError(err))
	}
	v := checker{file: name}
	v.document(&doc)
	if len(v.problems) > 0 {
		return userFile{}, v.sorted()
	}
	var file userFile
	if err := doc.Decode(&file); err != nil {
		return fail("%s", syntaxError(err))
	}
	for i := range file.GPUs {
		file.GPUs[i].Source = cmp.Or(file.GPUs[i].Source, name)
	}
	for i := range file.CPUs {
		file.CPUs[i].Source = cmp.Or(file.CPUs[i].Source, name)
	}
	for i := range file.Models {
		m := &file.Models[i]
		m.Source = cmp.Or(m.Source, name)
		m.ActiveParams = cmp.Or(m.ActiveParams, m.TotalParams)
	}
	return file, nil
}

var yamlLine = regexp.MustCompile(`(?s)^yaml: (?:unmarshal errors:\s*)?(?:line (\d+): )?(.*)$`)

// syntaxError formats a YAML error like the errors of a checker, with its line first.
func syntaxError(err error) string {
	m := yamlLine.FindStringSubmatch(err.Error())
	switch {
	case m == nil:
		return ": " + err.Error()
	case m[1] == "":
		return ": " + m[2]
	}
	return ":" + m[1] + ": " + m[2]
}
