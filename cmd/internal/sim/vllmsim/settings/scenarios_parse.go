package settings

import (
	"bytes"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// caseFile is one case with its pairs, which are decoded on top of it.
type caseFile struct {
	Scenario `yaml:",inline"`
	On       []yaml.Node `yaml:"on"`
}

type pair struct {
	Pair     string `yaml:"pair"`
	Scenario `yaml:",inline"`
}

// ParseScenario parses the scenarios of one file. An unknown field is an error, which names the file and the line, or for
// the field of a pair the pair's.
func ParseScenario(file string, data []byte) ([]Scenario, error) {
	c := caseFile{Scenario: Scenario{Startup: -1, File: file}}
	if err := strictly(data, &c); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var out []Scenario
	for i := range c.On {
		n := &c.On[i]
		text, err := yaml.Marshal(n)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n.Line, err)
		}
		p := pair{Scenario: c.Scenario}
		if err := strictly(text, &p); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n.Line, err)
		}
		s := p.Scenario
		s.Name, s.Line = c.Name+"/"+p.Pair, n.Line
		s.Story, s.Note, s.Gap = strings.TrimSpace(s.Story), strings.TrimSpace(s.Note), strings.TrimSpace(s.Gap)
		s.Server = strings.Join(strings.Fields(s.Server), " ")
		out = append(out, s)
	}
	return out, nil
}

// strictly decodes a document in which every field must be known. Errors are one line.
func strictly(data []byte, into any) error {
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%s", strings.Join(strings.Fields(err.Error()), " "))
	}
	return nil
}
