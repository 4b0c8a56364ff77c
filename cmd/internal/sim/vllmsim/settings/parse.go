package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Parse parses vLLM's arguments (flags, and a model as the first positional argument). read opens the files of
// --config, --model DIR and --sim-perf-file. The error is one sentence: vLLM's own if vLLM refuses the same,
// else with the flag, its value and the valid values.
func Parse(argv []string, read func(path string) ([]byte, error)) (*Settings, error) {
	if read == nil {
		read = func(path string) ([]byte, error) { return nil, errors.New("no files here") }
	}
	s := &Settings{Argv: slices.Clone(argv), Release: Releases[len(Releases)-1], Scale: 1, StartupTime: -1}
	rest, err := s.takeOwn(argv)
	if err != nil {
		return nil, err
	}
	cfg, err := command(rest, read)
	if err != nil {
		return nil, err
	}
	p := &parser{cfg: cfg, s: s, read: read, catalog: catalog.Default()}
	for _, step := range []func(){
		p.arguments, p.hardware, p.model, p.parallel, p.dtypes, p.length,
		p.cache, p.scheduler, p.batch, p.graphs, p.lora, p.frontEnd,
	} {
		if step(); p.err != nil {
			return nil, p.err
		}
	}
	for _, f := range s.Faults {
		if err := s.CheckFault(f); err != nil {
			return nil, fmt.Errorf("argument --sim-fault: %w", err)
		}
	}
	if s.APIKey, err = apiKey(cfg, rest); err != nil {
		return nil, err
	}
	s.Notes = append(s.Notes, p.unsimulated()...)
	return s, nil
}

// command parses the arguments as those of `vllm serve`, including their config file.
func command(args []string, read func(string) ([]byte, error)) (*launch.Config, error) {
	argv := append([]string{"vllm", "serve"}, args...)
	cfg, err := launch.Parse(argv, nil, nil)
	if err != nil {
		return nil, err
	}
	path := cfg.ConfigPath()
	if path == "" {
		return cfg, nil
	}
	text, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("argument --config: %w", err)
	}
	return launch.Parse(argv, nil, text)
}

// parser sets the settings step by step and keeps the first refusal.
type parser struct {
	cfg     *launch.Config
	s       *Settings
	read    func(string) ([]byte, error)
	catalog *catalog.Catalog
	hw      catalog.Hardware
	err     error

	modelGiven bool
}

func (p *parser) refuse(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// limitation refuses a feature that vLLM has and the simulator does not, instead of approximating it silently.
func (p *parser) limitation(what, why string) {
	p.refuse("not simulated: %s (%s); leave it out", what, why)
}

func (p *parser) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(p.s.Notes, text) {
		p.s.Notes = append(p.s.Notes, text)
	}
}

// apiKey returns the API key of the command line, because package launch does not expose secrets.
func apiKey(cfg *launch.Config, args []string) (string, error) {
	if _, _, given := cfg.Value("api_key"); !given {
		return "", nil
	}
	key, found := "", false
	for i, word := range args {
		head, value, inline := strings.Cut(word, "=")
		if strings.ReplaceAll(head, "_", "-") != "--api-key" {
			continue
		}
		switch {
		case inline:
			key, found = value, true
		case i+1 < len(args):
			key, found = args[i+1], true
		}
	}
	if !found {
		return "", errors.New("not simulated: --api-key in a config file; give it on the command line")
	}
	return key, nil
}
