package settings

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
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
	body `yaml:",inline"`
	On   []yaml.Node `yaml:"on"` // the pairs, which are decoded on top of the case
}

type pair struct {
	Pair string `yaml:"pair"`
	body `yaml:",inline"`
}

// fault is a settings.Fault in the syntax of --sim-fault: "stall@40s", "slow@1mx1.4".
type fault Fault

// UnmarshalText implements [encoding.TextUnmarshaler].
func (f *fault) UnmarshalText(text []byte) error {
	parsed, err := ParseFault(string(text))
	*f = fault(parsed)
	return err
}

// ParseScenario parses the scenarios of one file. An unknown field is an error, which names the file and the line, or for
// the field of a pair the pair's.
func ParseScenario(file string, data []byte) ([]Scenario, error) {
	var c caseFile
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
		p := pair{body: c.body}
		if err := strictly(text, &p); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n.Line, err)
		}
		s := p.scenario(&c)
		s.File, s.Line = file, n.Line
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

func (p *pair) scenario(c *caseFile) Scenario {
	s := Scenario{
		Name: c.Name + "/" + p.Pair, Case: c.Case, Story: strings.TrimSpace(p.Story), Note: strings.TrimSpace(p.Note),
		Server: strings.Join(strings.Fields(p.Server), " "), GPU: p.GPU, Startup: -1,
		Load: p.Load, Restarts: p.Restarts, Measure: p.Measure,
		Truth: p.Truth, Remedy: p.Remedy, Wrong: p.Wrong, Gap: strings.TrimSpace(p.Gap),
	}
	if p.Startup != nil {
		s.Startup = *p.Startup
	}
	for _, f := range p.Faults {
		s.Faults = append(s.Faults, Fault(f))
	}
	return s
}
