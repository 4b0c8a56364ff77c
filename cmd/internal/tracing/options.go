package tracing

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/atomicfile"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// Limits of a trace.
const (
	minTrace = 200 * time.Millisecond
	maxTrace = 24 * time.Hour
	// defaultOverhead is the default limit of the tracing cost, in percent of the target's speed:
	// what ProfInfer (arXiv:2601.20755) calls acceptable.
	defaultOverhead = 4.0
)

// Options describe what is traced, how, and the outputs.
type Options struct {
	cli.Output

	name string // of a process, or a recording
	pid  int
	file string

	duration    time.Duration
	level       string
	levelGiven  bool // the level was set explicitly
	detail      optrace.Detail
	maxOverhead float64 // percent
	force       bool
	measure     bool

	save, chrome, dot, html string

	flags *pflag.FlagSet
	env   func(string) (string, bool)
	// open attaches to a runtime; nil uses the kernel.
	open func() (Source, error)
	// machine describes the machine.
	machine func() (host, error)
	// load starts to measure which programs use the CPUs beside a process; nil disables that.
	load func(pid int) (loadMeter, error)

	catalogFile string
	catalog     *catalog.Catalog
}

// New returns the options of a trace on this machine.
func New(w *cli.World) *Options {
	return &Options{env: w.Env, machine: thisMachine, load: newLoadMeter}
}

// Register adds the flags of a trace.
func (o *Options) Register(g *cli.FlagGroups) {
	o.flags = g.Command.Flags()
	f := g.Group("The target")
	f.IntVar(&o.pid, "pid", 0, "`PID` of the process")
	f.StringVar(&o.file, "file", "", "`FILE` of the runtime (libggml-cpu.so): every process that uses it")
	f = g.Group("The trace")
	f.DurationVar(&o.duration, "duration", 10*time.Second, "`TIME` to trace")
	f.StringVar(&o.level, "level", "sched", "`LEVEL` of detail: token, graph, operator, tensor, barriers, sched, all, or details with + between them")
	f.Float64Var(&o.maxOverhead, "max-overhead", defaultOverhead, "let the target lose at most `PERCENT` of its speed")
	f.BoolVar(&o.force, "force", false, "trace even if that costs more than --max-overhead")
	f.BoolVar(&o.measure, "measure-overhead", false, "measure the cost before the trace, by switching it on and off for 12 s while the target decodes")
	f.StringVar(&o.catalogFile, "catalog", "", "YAML `FILE` with further CPUs, whose data sheets are the machine's peak")
	o.Output.Register(g, "every operator, layer, site and reason")
	f = g.Group("Files")
	f.StringVar(&o.save, "save", "", "`FILE"+Suffix+"` for the recording")
	f.StringVar(&o.chrome, "trace", "", "`FILE` for a trace that ui.perfetto.dev and chrome://tracing open")
	f.StringVar(&o.dot, "dot", "", "`FILE` for the graph of operators: dot -Tsvg draws it")
	f.StringVar(&o.html, "html", "", "`FILE` for the report as one page with its plots")
}

// limit returns the share of its speed that the target may lose; 0 is unlimited.
func (o *Options) limit() float64 {
	if o.force {
		return 0
	}
	return o.maxOverhead / 100
}

// owner returns the owner of the files.
func (o *Options) owner() *atomicfile.Owner { return atomicfile.SudoUser(os.Geteuid(), o.env) }

// outputs returns the files given by flags.
func (o *Options) outputs() []namedFile {
	return []namedFile{{"--save", o.save}, {"--trace", o.chrome}, {"--dot", o.dot}, {"--html", o.html}}
}

// namedFile is a file with the flag that names it.
type namedFile struct{ flag, path string }

// check rejects invalid options before anything else happens.
func (o *Options) check() error {
	var err error
	if o.catalog, _, err = cli.UserCatalog(o.catalogFile); err != nil {
		return err
	}
	if o.detail, err = optrace.ParseDetail(o.level); err != nil {
		return cli.Usagef("--level: %w", err)
	}
	o.levelGiven = o.flags.Changed("level")
	if err := o.takePID(); err != nil {
		return err
	}
	given := 0
	for _, there := range []bool{o.name != "", o.flags.Changed("pid"), o.file != ""} {
		if there {
			given++
		}
	}
	switch {
	case given > 1:
		return cli.Usagef("a name, --pid and --file each select the target: give one of them")
	case o.flags.Changed("pid") && o.pid <= 0:
		return cli.Usagef("--pid must be a process, not %d", o.pid)
	case o.duration < minTrace || o.duration > maxTrace:
		return cli.Usagef("--duration must be %s to %s, not %s", cli.FormatTime(minTrace), cli.FormatTime(maxTrace), cli.FormatTime(o.duration))
	case math.IsNaN(o.maxOverhead) || o.maxOverhead <= 0:
		return cli.Usagef("--max-overhead must be more than 0 per cent, not %v; --level token costs least", o.maxOverhead)
	case o.measure && o.detail&optrace.DetailOperator == 0:
		return cli.Usagef("--measure-overhead is for levels with operators, not for --level %s", o.level)
	}
	if err := o.checkForRecording(); err != nil {
		return err
	}
	return checkFiles(o.outputs())
}

// checkForRecording rejects options that apply to a new trace but not to a recording.
func (o *Options) checkForRecording() error {
	if !o.recording() {
		return nil
	}
	for _, name := range []string{"level", "duration", "max-overhead", "force", "measure-overhead"} {
		flag := o.flags.Lookup(name)
		if cli.OnCommandLine(flag) {
			return cli.Usagef("--%s is for a new trace, and %s is a recording: leave it out", name, o.name)
		}
	}
	return nil
}

// takePID treats a name that is a number, and not a file, as a PID, like kill does.
func (o *Options) takePID() error {
	if o.name == "" || strings.Trim(o.name, "0123456789") != "" || o.recording() {
		return nil
	}
	if err := o.flags.Lookup("pid").Value.Set(o.name); err != nil || o.pid <= 0 || o.pid > math.MaxInt32 {
		return cli.Usagef("--pid must be a process, not %s", o.name)
	}
	if o.flags.Changed("pid") {
		return cli.Usagef("a name, --pid and --file each select the target: give one of them")
	}
	o.name = ""
	o.flags.Lookup("pid").Changed = true
	return nil
}

// checkFiles returns an error for files that cannot be written, or that are the same.
func checkFiles(files []namedFile) error {
	seen := map[string]string{}
	for _, f := range files {
		if f.path == "" {
			continue
		}
		if err := atomicfile.Check(f.path); err != nil {
			return cli.Usagef("%s: %w", f.flag, err)
		}
		path := filepath.Clean(f.path)
		if other := seen[path]; other != "" {
			return cli.Usagef("%s and %s name the same file, %s: name two", other, f.flag, path)
		}
		seen[path] = f.flag
	}
	return nil
}
