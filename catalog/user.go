package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxUserFile bounds a user's file, in bytes.
const maxUserFile = 1 << 20

// userFile is what a user's file may hold: lists of the same shape as the
// embedded ones.
type userFile struct {
	GPUs   []GPU   `yaml:"gpus"`
	CPUs   []CPU   `yaml:"cpus"`
	Models []Model `yaml:"models"`
}

// With returns a catalog that holds the entries of a user's YAML file (lists
// "gpus", "cpus" and "models", of the shape that `rooftop catalog show` prints)
// before its own. An entry replaces one of the same name or id; where both match a
// name equally well, the user's is taken. name stands for the file in errors,
// which are those of Check, joined.
func (c *Catalog) With(r io.Reader, name string) (*Catalog, error) {
	file, problems := readUserFile(r, name)
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	out := *c
	if len(file.GPUs) > 0 {
		old := c.gpus()
		x := newGPUIndex(merge(file.GPUs, old.entries, func(g GPU) string { return g.Name }))
		x.users = old.users + len(file.GPUs)
		out.gpus = func() gpuIndex { return x }
	}
	if len(file.CPUs) > 0 {
		old := c.cpus()
		x := newCPUIndex(merge(file.CPUs, old.entries, func(c CPU) string { return c.Name }))
		x.users = old.users + len(file.CPUs)
		out.cpus = func() cpuIndex { return x }
	}
	if len(file.Models) > 0 {
		old := c.models()
		x := newModelIndex(merge(file.Models, old.entries, func(m Model) string { return m.ID }))
		x.users = old.users + len(file.Models)
		out.models = func() modelIndex { return x }
	}
	return &out, nil
}

// Check reads a user's file as With does and returns every problem in order of
// line, each as "FILE:LINE: FIELD: what is wrong".
func (c *Catalog) Check(r io.Reader, name string) []error {
	_, problems := readUserFile(r, name)
	return problems
}

func merge[T any](user, own []T, key func(T) string) []T {
	out := slices.Clone(user)
	for _, e := range own {
		if !slices.ContainsFunc(user, func(u T) bool { return strings.EqualFold(key(u), key(e)) }) {
			out = append(out, e)
		}
	}
	return out
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
		file.GPUs[i].Source = orElse(file.GPUs[i].Source, name)
	}
	for i := range file.CPUs {
		file.CPUs[i].Source = orElse(file.CPUs[i].Source, name)
	}
	for i := range file.Models {
		m := &file.Models[i]
		m.Source = orElse(m.Source, name)
		if m.ActiveParams == 0 {
			m.ActiveParams = m.TotalParams
		}
	}
	return file, nil
}

var yamlLine = regexp.MustCompile(`(?s)^yaml: (?:unmarshal errors:\s*)?(?:line (\d+): )?(.*)$`)

// syntaxError puts the line of a YAML error where the other errors have it.
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
