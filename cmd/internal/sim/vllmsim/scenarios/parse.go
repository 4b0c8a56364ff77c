package scenarios

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// body holds the fields that a case sets for all its pairs and that a pair may override.
type body struct {
	Story    string          `yaml:"story"`
	Note     string          `yaml:"note"`
	Server   string          `yaml:"server"`
	GPU      string          `yaml:"gpu"`
	Startup  *time.Duration  `yaml:"startup"`
	Load     []Stream        `yaml:"load"`
	Faults   []fault         `yaml:"faults"`
	Restarts []time.Duration `yaml:"restarts"`
	Measure  Measure         `yaml:"measure"`
	Truth    Truth           `yaml:"truth"`
	Remedy   Change          `yaml:"remedy"`
	Wrong    Change          `yaml:"wrong"`
	Gap      string          `yaml:"gap"`
}

type caseFile struct {
	Case string `yaml:"case"`
	Name string `yaml:"name"`
	body
	On pairNodes `yaml:"on"`
}

// pairNodes keeps the YAML nodes of the pairs until the case is decoded.
type pairNodes struct{ node *yaml.Node }

type pair struct {
	Pair string `yaml:"pair"`
	body
}

// fault is a settings.Fault in the syntax of --sim-fault: "stall@40s", "slow@1mx1.4".
type fault settings.Fault

func (f *fault) parse(text string) error {
	parsed, err := settings.ParseFault(text)
	*f = fault(parsed)
	return err
}

// maxBytes bounds the size of a scenario file; the largest of the library has 8 KB.
const maxBytes = 1 << 20

// Parse parses the scenarios of one file. Errors are one line: "FILE:LINE: FIELD: problem".
func Parse(file string, data []byte) ([]Scenario, error) {
	d := decoder{file}
	if len(data) > maxBytes {
		return nil, fmt.Errorf("%s: larger than %d KiB: not a scenario file", file, maxBytes>>10)
	}
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s: empty", file)
	case err != nil:
		return nil, fmt.Errorf("%s: %s", file, oneLine(err))
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: more than one document: a file is one case", file)
	}
	root := doc.Content[0]
	var c caseFile
	if err := d.caseOf(root, &c); err != nil {
		return nil, err
	}
	var out []Scenario
	for i, n := range c.On.node.Content {
		path := fmt.Sprintf("on[%d]", i)
		p := pair{body: c.body}
		if err := d.value(n, reflect.ValueOf(&p).Elem(), path); err != nil {
			return nil, err
		}
		s := p.scenario(&c)
		s.File, s.Line = file, n.Line
		if field, err := s.check(); err != nil {
			return nil, d.fail(n, join(path, field), "%w", err)
		}
		if slices.ContainsFunc(out, func(earlier Scenario) bool { return earlier.Name == s.Name }) {
			return nil, d.fail(n, path+".pair", "%q is there twice", p.Pair)
		}
		out = append(out, s)
	}
	return out, nil
}

// caseOf decodes a case without its pairs.
func (d decoder) caseOf(root *yaml.Node, c *caseFile) error {
	rest := *root
	rest.Content = nil
	for i := 0; root.Kind == yaml.MappingNode && i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "on" && c.On.node == nil {
			c.On.node = root.Content[i+1]
			continue
		}
		rest.Content = append(rest.Content, root.Content[i], root.Content[i+1])
	}
	if err := d.value(&rest, reflect.ValueOf(c).Elem(), ""); err != nil {
		return err
	}
	switch {
	case !caseID.MatchString(c.Case):
		return d.fail(root, "case", "%q is not one of S1 to S24", c.Case)
	case !nameID.MatchString(c.Name):
		return d.fail(root, "name", "%q is not a name of lower-case words joined by dashes", c.Name)
	case c.On.node == nil:
		return d.fail(root, "on", "missing: the pairs of model and hardware")
	case c.On.node.Kind != yaml.SequenceNode || len(c.On.node.Content) == 0:
		return d.fail(c.On.node, "on", "a list of pairs is expected")
	}
	return nil
}

var (
	caseID = regexp.MustCompile(`^S([1-9]|1[0-9]|2[0-4])$`)
	nameID = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
)

func oneLine(err error) string {
	return strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " ")
}

func (p *pair) scenario(c *caseFile) Scenario {
	s := Scenario{
		Name: c.Name + "/" + p.Pair, Case: c.Case, Story: p.Story, Note: p.Note,
		Server: strings.Join(strings.Fields(p.Server), " "), GPU: p.GPU, Startup: -1,
		Load: p.Load, Restarts: p.Restarts, Measure: p.Measure,
		Truth: p.Truth, Remedy: p.Remedy, Wrong: p.Wrong, Gap: p.Gap,
	}
	if p.Startup != nil {
		s.Startup = *p.Startup
	}
	for _, f := range p.Faults {
		s.Faults = append(s.Faults, settings.Fault(f))
	}
	return s
}

// minMeasure is the shortest run that rooftop diagnoses.
const minMeasure = 8 * time.Second

// Valid outcomes and kinds of a truth, as in rooftop.diagnosis/v1.
var (
	outcomes = []string{"recommendation", "healthy", "no-load", "not-evaluable", "unhealthy"}
	kinds    = []string{"flag", "client", "host", "hardware"}
)

// check returns the first inconsistency and its field; "" and nil if there is none.
func (s *Scenario) check() (field string, err error) {
	if _, pair, _ := strings.Cut(s.Name, "/"); !nameID.MatchString(pair) {
		return "pair", fmt.Errorf("%q is not a name of lower-case words joined by dashes", pair)
	}
	if s.Story == "" {
		return "story", errors.New("missing: what happened, in a sentence or two")
	}
	if _, err := launch.ParseCommand(s.Server, nil, nil); err != nil {
		return "server", fmt.Errorf("%q is not a vLLM command line: %w", s.Server, err)
	}
	if !strings.HasPrefix(s.Server, "vllm serve ") {
		return "server", fmt.Errorf("%q does not begin with \"vllm serve MODEL\"", s.Server)
	}
	if _, err := catalog.Default().FindGPU(s.GPU, 0); err != nil {
		return "gpu", err
	}
	if s.Measure.For < minMeasure {
		return "measure.for", fmt.Errorf("%v is shorter than %v", s.Measure.For, minMeasure)
	}
	if field, err := s.Truth.check(); err != nil {
		return field, err
	}
	if field, err := checkLoad(s.Load); err != nil {
		return field, err
	}
	for _, c := range []struct {
		name string
		*Change
	}{{"remedy", &s.Remedy}, {"wrong", &s.Wrong}} {
		if c.Empty() && c.name == "remedy" && len(c.Expect) == 0 {
			continue // nothing is wrong, or nothing helps
		}
		if c.Empty() {
			return c.name, errors.New("changes nothing: give set, drop, load or mend")
		}
		if len(c.Expect) == 0 {
			return c.name + ".expect", errors.New("missing: what must come of the change")
		}
		if field, err := checkLoad(c.Load); err != nil {
			return c.name + "." + field, err
		}
	}
	return "", nil
}

func (t *Truth) check() (field string, err error) {
	if len(t.Outcomes) == 0 {
		return "truth.outcome", fmt.Errorf("missing: one of %s", strings.Join(outcomes, ", "))
	}
	for _, words := range []struct {
		field        string
		given, known []string
	}{{"truth.outcome", t.Outcomes, outcomes}, {"truth.kind", t.Kinds, kinds}} {
		for _, word := range words.given {
			if !slices.Contains(words.known, word) {
				return words.field, fmt.Errorf("%q is not one of %s", word, strings.Join(words.known, ", "))
			}
		}
	}
	for _, f := range t.Flags {
		if !strings.HasPrefix(f, "--") {
			return "truth.flag", fmt.Errorf("%q: a flag begins with --", f)
		}
	}
	return "", nil
}

func checkLoad(load []Stream) (field string, err error) {
	names := map[string]bool{}
	for i := range load {
		at, st := fmt.Sprintf("load[%d]", i), &load[i]
		if len(load) > 1 && (st.Name == "" || names[st.Name]) {
			return at + ".name", errors.New("several streams need a name each")
		}
		names[st.Name] = true
		switch {
		case len(st.Phases) == 0:
			return at + ".phases", errors.New("missing")
		case !st.Prompt.Set():
			return at + ".prompt", errors.New("missing: the tokens of a prompt")
		case !st.Output.Set():
			return at + ".output", errors.New("missing: the tokens of an answer")
		case !(st.Cancel >= 0 && st.Cancel <= 1):
			return at + ".cancel", fmt.Errorf("must be in 0..1, not %v", st.Cancel)
		case !(st.CV >= 0 && st.CV <= 100):
			return at + ".cv", fmt.Errorf("must be in 0..100, not %v", st.CV)
		}
		for j, p := range st.Phases {
			at := fmt.Sprintf("%s.phases[%d]", at, j)
			switch {
			case p.Rate > 0 && st.Closed():
				return at, errors.New("either rate or users, in all phases")
			case p.Rate < 0 || p.Users < 0 || p.To < 0:
				return at, errors.New("below zero")
			case p.For == 0 && j < len(st.Phases)-1:
				return at + ".for", errors.New("missing: only the last phase goes on to the end")
			}
		}
	}
	return "", nil
}
