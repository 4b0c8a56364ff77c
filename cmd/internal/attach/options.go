package attach

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine/facts"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// MinDuration is the shortest measurement: the quality gate needs three windows and a
// quarter of all, and the first window of a run is often incomplete.
const MinDuration = 8 * time.Second

// maxModelConfig is the largest config.json of a model, in bytes.
const maxModelConfig = 8 << 20

// MaxDuration is the longest measurement. It limits the memory of a run, about 6 KB for each
// window of 2 s.
const MaxDuration = time.Hour

// Options are the flags of every command that reads a server. They are input alone: a [Locator] leads to the server.
type Options struct {
	URL         string
	Kube        string // [NAMESPACE/]KIND/NAME of a workload of Kubernetes; "" for a server at URL
	Context     string // of the kubeconfig
	Duration    time.Duration
	MaxNumSeqs  int
	TP          int
	Cost        float64
	Spot        bool
	GPU         string
	Model       string
	ModelConfig string
	CatalogFile string
	Ceiling     string
	Objectives  []verdict.Objective // limits on latencies that bound the headroom
	APIKeyFile  string
	CAFile      string
	DCGMURL     string
	Record      string
	// measures is true if Duration is that of a measurement.
	measures bool
	cli.Output

	Flags *pflag.FlagSet
	Env   func(string) (string, bool)
}

// RegisterServer adds the flags that say where a server is and how to reach it.
func (o *Options) RegisterServer(g *cli.FlagGroups) {
	o.Flags = g.Command.Flags()
	f := g.Group("The server")
	f.StringVarP(&o.URL, "url", "u", "", "base `URL`, metrics URL or host:port (default: the server found on this machine, else http://localhost:8000)")
	o.RegisterKube(f)
	o.RegisterAccess(f)
	f.StringVar(&o.DCGMURL, "dcgm-url", "", "`URL` of a DCGM exporter's page to read the GPUs from")
}

// RegisterKube adds the flags that name a workload of Kubernetes.
func (o *Options) RegisterKube(f *pflag.FlagSet) {
	f.StringVar(&o.Kube, "kube", "", "Kubernetes `WORKLOAD`, as [NAMESPACE/]deployment/NAME or statefulset/NAME; its pod is reached through the API server")
	f.StringVar(&o.Context, "context", "", "`NAME` of the kubeconfig's context for --kube (default its current one)")
}

// RegisterUnread adds the flags for facts that cannot be read from a server. They override
// what was read. It returns the group of the flags.
func (o *Options) RegisterUnread(g *cli.FlagGroups) *pflag.FlagSet {
	f := g.Group("What cannot be read")
	f.IntVarP(&o.MaxNumSeqs, "max-num-seqs", "m", 0, "`N` slots: the server's own --max-num-seqs")
	f.IntVar(&o.TP, "tensor-parallel-size", 0, "`N` GPUs: the server's own tensor-parallel degree")
	f.StringVar(&o.GPU, "gpu", "", "`NAME` of the GPU: \"H100 SXM\", L4, …")
	f.StringVar(&o.Model, "model", "", "`NAME` of the model, if the served name does not identify it")
	f.StringVar(&o.ModelConfig, "model-config", "", "config.json `FILE` of the model")
	f.StringVar(&o.CatalogFile, "catalog", "", "YAML `FILE` with further GPUs and models")
	f.Float64Var(&o.Cost, "cost-per-hour", 0, "`USD` per hour for the whole server")
	f.BoolVar(&o.Spot, "spot", false, "use the catalog's spot prices if no cost is given")
	return f
}

// RegisterRun adds the flags of a measurement. what describes the duration in its help, as in
// "of the measurement". It returns the group of the flags, so that more can be added.
func (o *Options) RegisterRun(g *cli.FlagGroups, duration time.Duration, what string) *pflag.FlagSet {
	f := g.Group("The run")
	o.RegisterDuration(f, duration, what)
	f.StringVar(&o.Record, "record", "", "new `FILE` for the raw pages and readings, for 'rooftop replay'")
	cli.Choice(f, &o.Ceiling, "ceiling", PhysicalCeiling, "`WHICH` ceiling to show: physical or classic (the PROFILE formulas)", PhysicalCeiling, ClassicCeiling)
	return f
}

// RegisterDuration adds the flag of the duration alone.
func (o *Options) RegisterDuration(f *pflag.FlagSet, duration time.Duration, what string) {
	o.measures = true
	f.DurationVar(&o.Duration, "duration", duration, "`TIME` "+what+", at least 8s")
}

// RegisterAccess adds the flags that say how to reach servers.
func (o *Options) RegisterAccess(f *pflag.FlagSet) {
	f.StringVar(&o.APIKeyFile, "api-key-file", "", "`FILE` that holds the server's API key (default the variable ROOFTOP_API_KEY)")
	f.StringVar(&o.CAFile, "ca-file", "", "PEM `FILE` of certificates to trust instead of the system's")
}

// Check validates the options, the environment and the named files. Call it before any
// server is contacted. It returns a usage error.
func (o *Options) Check() error {
	if err := o.CheckFlags(); err != nil {
		return err
	}
	return o.knownGPU()
}

// CheckFlags is Check, but accepts a --gpu that only the catalog of a recording has.
func (o *Options) CheckFlags() error {
	switch {
	case !o.measures:
	case o.Duration < MinDuration:
		return cli.Usagef("--duration %v is too short: at least %v are needed for a verdict that is not noise", o.Duration, MinDuration)
	case o.Duration > MaxDuration:
		return cli.Usagef("--duration %s is too long: at most %s, which one diagnosis holds in memory; for longer, measure again", cli.FormatTime(o.Duration), cli.FormatTime(MaxDuration))
	}
	switch {
	case o.Flags.Changed("url") && strings.TrimSpace(o.URL) == "":
		return cli.Usagef("--url is empty: give the server's URL, or leave the flag out to use the server found on this machine")
	case o.Kube != "" && o.URL != "":
		return cli.Usagef("--kube %s and --url %s name two servers: give one", o.Kube, o.URL)
	case o.Context != "" && o.Kube == "":
		return cli.Usagef("--context %s goes with --kube [NAMESPACE/]KIND/NAME", o.Context)
	case o.Flags.Changed("max-num-seqs") && o.MaxNumSeqs < 1:
		return cli.Usagef("--max-num-seqs must be at least 1, not %d", o.MaxNumSeqs)
	case o.Flags.Changed("tensor-parallel-size") && o.TP < 1:
		return cli.Usagef("--tensor-parallel-size must be at least 1, not %d", o.TP)
	case o.Flags.Changed("cost-per-hour") && !(o.Cost > 0 && o.Cost < 1e6):
		return cli.Usagef("--cost-per-hour must be a positive number of USD, not %v", o.Cost)
	}
	return o.checkFiles()
}

// checkFiles reads every file named by an option.
func (o *Options) checkFiles() error {
	if _, _, err := cli.UserCatalog(o.CatalogFile); err != nil {
		return err
	}
	if o.ModelConfig != "" {
		if _, err := ReadModelConfig(o.ModelConfig); err != nil {
			return err
		}
	}
	_, err := o.Token()
	return err
}

// Ceilings that a report can show.
const (
	PhysicalCeiling = "physical"
	ClassicCeiling  = "classic"
)

// Given returns the facts given by flags and those given by environment variables.
func (o *Options) Given() (flags, env facts.Given) {
	put := func(name string, set func(*facts.Given)) {
		flag := o.Flags.Lookup(name)
		if flag == nil || !flag.Changed {
			return
		}
		if cli.FromVariable(flag) {
			set(&env)
			return
		}
		set(&flags)
	}
	put("max-num-seqs", func(g *facts.Given) { g.MaxNumSeqs = o.MaxNumSeqs })
	put("tensor-parallel-size", func(g *facts.Given) { g.TensorParallel = o.TP })
	put("cost-per-hour", func(g *facts.Given) { g.CostPerHour = stat.Some(o.Cost) })
	put("gpu", func(g *facts.Given) { g.GPU = o.GPU })
	put("model", func(g *facts.Given) { g.Model = o.Model })
	env.DType = DocumentedDType(o.Env)
	for _, name := range []string{"TENSOR_PARALLEL_SIZE", "VLLM_TENSOR_PARALLEL_SIZE"} {
		if v, ok := o.Env(name); ok && env.TensorParallel == 0 {
			var n int
			if _, err := fmt.Sscanf(v, "%d", &n); err == nil && n > 0 {
				env.TensorParallel = n
			}
		}
	}
	return flags, env
}

// DocumentedDType returns the data type in DTYPE or VLLM_DTYPE, the variables of the PROFILE
// formulas; "" if neither is set.
func DocumentedDType(env func(string) (string, bool)) string {
	for _, name := range []string{"DTYPE", "VLLM_DTYPE"} {
		if v, ok := env(name); ok && v != "" {
			return v
		}
	}
	return ""
}

// Token returns the server's API key for requests.
func (o *Options) Token() (collect.Secret, error) {
	key, err := APIKey(o.Env, o.APIKeyFile)
	if err != nil {
		return collect.Secret{}, err
	}
	return collect.NewSecret(key)
}

// ReadModelConfig reads a model's config.json, given with --model-config.
func ReadModelConfig(path string) (catalog.Model, error) {
	text, err := cli.ReadFile(path, maxModelConfig)
	if err != nil {
		return catalog.Model{}, cli.Usagef("--model-config: %w", err)
	}
	m, err := catalog.ParseModelConfig(bytes.NewReader(text))
	if err != nil {
		return m, cli.Usagef("--model-config %s: %w", path, err)
	}
	return m, nil
}

// CheckAddresses checks that clients can be created for the given addresses and
// certificates. It contacts nothing.
func (o *Options) CheckAddresses() error {
	if o.DCGMURL != "" {
		client, err := dcgmClient(o)
		if err != nil {
			return err
		}
		client.Close()
	}
	target, err := ParseTarget("http://localhost:" + collect.DefaultPort)
	if err != nil {
		return err
	}
	client, err := collect.NewClient(collect.Options{Target: target, CAFile: o.CAFile})
	if err != nil {
		return cli.Usagef("%w", err)
	}
	client.Close()
	return nil
}

// DTypeFlag parses a flag with a data type; ok is false if it is empty or "auto".
func DTypeFlag(flag, text string) (d catalog.DType, ok bool, err error) {
	if text == "" || text == "auto" {
		return "", false, nil
	}
	if d, ok = catalog.ParseDType(text); !ok {
		return "", false, cli.Usagef("%s: unknown type %q; known are bf16, fp16, fp32, fp8, int8, int4, mxfp4 and nvfp4", flag, text)
	}
	return d, true, nil
}
