package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/report"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// minDuration is the least that a run may measure: the gate needs three windows
// and a quarter of all, and the first of a run is often cut short.
const minDuration = 8 * time.Second

// maxDuration bounds what a run keeps: about 6 KB for each window of 2 s.
const maxDuration = time.Hour

// options are the flags of every command that reads a server.
type options struct {
	url         string
	duration    time.Duration
	maxNumSeqs  int
	tp          int
	cost        float64
	spot        bool
	gpu         string
	model       string
	modelConfig string
	catalogFile string
	ceiling     string
	apiKeyFile  string
	caFile      string
	dcgmURL     string
	record      string
	// launch is the server's own launch where rooftop started it; nil is looked
	// for among this machine's processes.
	launch *launch.Config
	// measures says that duration is that of a measurement.
	measures bool
	output

	flags *pflag.FlagSet
	env   func(string) (string, bool)
}

// output says how a command prints.
type output struct {
	verbose bool
	json    bool
	plain   bool
	color   string
	ascii   bool
}

// register adds the flags of what a command prints; more is what -v adds.
func (o *output) register(g *flagGroups, more string) {
	f := g.group("Output")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "also print "+more)
	f.BoolVar(&o.json, "json", false, "one JSON document instead of text")
	f.BoolVar(&o.plain, "plain", false, "no colour, no cursor movement, no progress line")
	f.StringVar(&o.color, "color", "auto", "`WHEN` to use colour: auto, always or never; NO_COLOR is honoured")
	f.BoolVar(&o.ascii, "ascii", false, "ASCII characters alone; also with TERM=linux or LC_ALL=C")
}

// registerServer are the flags that say where a server is and how to reach it.
func (o *options) registerServer(g *flagGroups) {
	o.flags = g.command.Flags()
	f := g.group("The server")
	f.StringVarP(&o.url, "url", "u", "", "base `URL`, metrics URL or host:port (default: the vLLM found on this machine, else http://localhost:8000)")
	f.StringVar(&o.apiKeyFile, "api-key-file", "", "`FILE` that holds the server's API key; else the variable ROOFTOP_API_KEY")
	f.StringVar(&o.caFile, "ca-file", "", "PEM `FILE` of certificates to trust instead of the system's")
	f.StringVar(&o.dcgmURL, "dcgm-url", "", "`URL` of a DCGM exporter's page to read the GPUs from")
}

// registerUnread are the flags for what cannot be read of a server. They beat
// what was read.
func (o *options) registerUnread(g *flagGroups) {
	f := g.group("What cannot be read")
	f.IntVarP(&o.maxNumSeqs, "max-num-seqs", "m", 0, "`N` seats: the server's own --max-num-seqs")
	f.IntVar(&o.tp, "tensor-parallel-size", 0, "`N` GPUs: the server's own tensor-parallel degree")
	f.StringVar(&o.gpu, "gpu", "", "`NAME` of the GPU: \"H100 SXM\", L4, …")
	f.StringVar(&o.model, "model", "", "`NAME` of the model, where the served one says too little")
	f.StringVar(&o.modelConfig, "model-config", "", "config.json `FILE` of the model")
	f.StringVar(&o.catalogFile, "catalog", "", "YAML `FILE` with further GPUs and models")
	f.Float64Var(&o.cost, "cost-per-hour", 0, "`USD` per hour for the whole server")
	f.BoolVar(&o.spot, "spot", false, "take the catalog's spot prices, where no cost is given")
}

// registerRun are the flags of a measurement; of says what the duration is that of.
// It returns their group, for more.
func (o *options) registerRun(g *flagGroups, duration time.Duration, of string) *pflag.FlagSet {
	o.measures = true
	f := g.group("The run")
	f.DurationVar(&o.duration, "duration", duration, "`TIME` "+of+", at least 8s")
	f.StringVar(&o.record, "record", "", "new `FILE` for the raw pages and readings, to replay")
	f.StringVar(&o.ceiling, "ceiling", "physical", "`WHICH` ceiling to show: physical or classic")
	return f
}

// fromEnvironment gives flags that were not on the command line the value of
// ROOFTOP_<NAME>, and remembers which: a variable is a source of its own.
func fromEnvironment(f *pflag.FlagSet, env func(string) (string, bool)) error {
	var first error
	f.VisitAll(func(flag *pflag.Flag) {
		name := "ROOFTOP_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		text, ok := env(name)
		if !ok || text == "" || flag.Changed || flag.Name == "help" || first != nil {
			return
		}
		if err := f.Set(flag.Name, text); err != nil {
			first = usage("the variable %s: %w", name, unread(err))
			return
		}
		if flag.Annotations == nil {
			flag.Annotations = map[string][]string{}
		}
		flag.Annotations[fromVariable] = []string{name}
	})
	return first
}

// fromVariable marks a flag whose value came from the environment.
const fromVariable = "rooftop_variable"

// check reads the environment and the files of this machine, and refuses what
// cannot be meant: all of it before anything is asked of a server.
func (o *options) check() error {
	if err := fromEnvironment(o.flags, o.env); err != nil {
		return err
	}
	if err := o.output.check(); err != nil {
		return err
	}
	switch {
	case !o.measures:
	case o.duration < minDuration:
		return usage("--duration %v is too short: at least %v are needed for a verdict that is not noise", o.duration, minDuration)
	case o.duration > maxDuration:
		return usage("--duration %v is too long: at most %v, which one diagnosis holds in memory; for longer, measure again", o.duration, maxDuration)
	}
	switch {
	case o.flags.Changed("max-num-seqs") && o.maxNumSeqs < 1:
		return usage("--max-num-seqs must be at least 1, not %d", o.maxNumSeqs)
	case o.flags.Changed("tensor-parallel-size") && o.tp < 1:
		return usage("--tensor-parallel-size must be at least 1, not %d", o.tp)
	case o.flags.Changed("cost-per-hour") && !(o.cost > 0 && o.cost < 1e6):
		return usage("--cost-per-hour must be a positive number of USD, not %v", o.cost)
	}
	if o.flags.Lookup("ceiling") != nil {
		if err := checkCeiling(o.ceiling); err != nil {
			return err
		}
	}
	return o.checkFiles()
}

// checkFiles reads every file that was named.
func (o *options) checkFiles() error {
	if _, _, err := userCatalog(o.catalogFile); err != nil {
		return err
	}
	if o.modelConfig != "" {
		if _, err := readModelConfig(o.modelConfig); err != nil {
			return err
		}
	}
	_, err := o.token()
	return err
}

// checkCeiling refuses a ceiling that there is not.
func checkCeiling(which string) error {
	if which != physicalCeiling && which != classicCeiling {
		return usage("--ceiling is physical or classic, not %q", which)
	}
	return nil
}

// Ceilings that a report can show.
const (
	physicalCeiling = "physical"
	classicCeiling  = "classic"
)

func (o *output) check() error {
	switch o.color {
	case "auto", "always", "never":
	default:
		return usage("--color is auto, always or never, not %q", o.color)
	}
	return nil
}

// given splits what the person said into flags and environment.
func (o *options) given() (flags, env engine.Given) {
	put := func(name string, set func(*engine.Given)) {
		flag := o.flags.Lookup(name)
		if flag == nil || !flag.Changed {
			return
		}
		if flag.Annotations[fromVariable] != nil {
			set(&env)
			return
		}
		set(&flags)
	}
	put("max-num-seqs", func(g *engine.Given) { g.MaxNumSeqs = o.maxNumSeqs })
	put("tensor-parallel-size", func(g *engine.Given) { g.TensorParallel = o.tp })
	put("cost-per-hour", func(g *engine.Given) { g.CostPerHour = stat.Some(o.cost) })
	put("gpu", func(g *engine.Given) { g.GPU = o.gpu })
	put("model", func(g *engine.Given) { g.Model = o.model })
	env.DType = documentedDType(o.env)
	for _, name := range []string{"TENSOR_PARALLEL_SIZE", "VLLM_TENSOR_PARALLEL_SIZE"} {
		if v, ok := o.env(name); ok && env.TensorParallel == 0 {
			var n int
			if _, err := fmt.Sscanf(v, "%d", &n); err == nil && n > 0 {
				env.TensorParallel = n
			}
		}
	}
	return flags, env
}

// documentedDType is what the variables of the classic formulas say of the bytes
// of a parameter, "" where neither is set.
func documentedDType(env func(string) (string, bool)) string {
	for _, name := range []string{"DTYPE", "VLLM_DTYPE"} {
		if v, ok := env(name); ok && v != "" {
			return v
		}
	}
	return ""
}

// token is the server's API key, from a file or a variable, never from a flag:
// command lines are public on a machine.
func (o *options) token() (collect.Secret, error) {
	if o.apiKeyFile != "" {
		s, err := collect.ReadSecret(o.apiKeyFile)
		if err != nil {
			return s, usage("--api-key-file: %w", err)
		}
		return s, nil
	}
	v, _ := o.env("ROOFTOP_API_KEY")
	s, err := collect.NewSecret(v)
	if err != nil {
		return s, usage("the variable ROOFTOP_API_KEY: %w", err)
	}
	return s, nil
}

// userCatalog returns the embedded catalog, with the person's file where one is
// given, and that file's text for the recording.
func userCatalog(path string) (*catalog.Catalog, string, error) {
	c := catalog.Default()
	if path == "" {
		return c, "", nil
	}
	text, err := readFile(path, 1<<20)
	if err != nil {
		return nil, "", usage("--catalog: %w", err)
	}
	c, err = c.With(strings.NewReader(string(text)), path)
	if err != nil {
		return nil, "", usage("--catalog: %w", err)
	}
	return c, string(text), nil
}

// readModelConfig reads a model's config.json.
func readModelConfig(path string) (catalog.Model, error) {
	text, err := readFile(path, 8<<20)
	if err != nil {
		return catalog.Model{}, usage("--model-config: %w", err)
	}
	m, err := catalog.ParseModelConfig(bytes.NewReader(text))
	if err != nil {
		return m, usage("--model-config %s: %w", path, err)
	}
	return m, nil
}

// readFile reads a file of at most limit bytes.
func readFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s is a directory", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// A device or a pipe has no size to go by.
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		return nil, fmt.Errorf("%s is larger than %d KiB", path, limit>>10)
	}
	return text, err
}

// style settles how to print on a writer.
func (o *output) style(w *world) report.Options {
	width, tty := terminal(w.stdout)
	if !tty {
		width = 80
	}
	noColor, set := w.env("NO_COLOR")
	term, _ := w.env("TERM")
	locale, _ := w.env("LC_ALL")
	colour := tty && term != "dumb" && !(set && noColor != "")
	switch o.color {
	case "always":
		colour = true
	case "never":
		colour = false
	}
	return report.Options{
		Width:   min(width, 120),
		Color:   colour && !o.plain,
		ASCII:   o.ascii || term == "linux" || locale == "C" || locale == "POSIX",
		Verbose: o.verbose,
	}
}
