package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"charm.land/bubbletea/v2"
	"github.com/spf13/pflag"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/wholefile"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// Limits of a trace.
const (
	minTrace = 200 * time.Millisecond
	maxTrace = 24 * time.Hour
	// defaultOverhead is the share of the target's speed that watching may cost, in
	// per cent, unless one says otherwise: what ProfInfer (arXiv:2601.20755) calls
	// acceptable.
	defaultOverhead = 4.0
)

// traceOptions are the flags of trace.
type traceOptions struct {
	output

	name string // of a process, or a recording
	pid  int
	file string

	duration    time.Duration
	level       string
	levelGiven  bool // and not the default
	detail      optrace.Detail
	maxOverhead float64 // per cent
	force       bool
	measure     bool
	roof        bool

	save, chrome, dot, svg, html string

	flags *pflag.FlagSet
	env   func(string) (string, bool)
	// open attaches to a runtime; nil is the kernel's way.
	open func() (operatorSource, error)
	// machine is the one that is measured.
	machine roofing
	// load begins to measure who has the CPUs beside a process; nil where nobody does.
	load func(pid int) (hostLoad, error)

	catalogFile string
	catalog     *catalog.Catalog

	// exportDir is where the screen exports to, "" the current directory.
	exportDir string
	// program adds to the options of the screen's program: tests have no terminal.
	program []tea.ProgramOption
}

func (o *traceOptions) register(g *flagGroups) {
	f := g.group("The target")
	f.IntVar(&o.pid, "pid", 0, "`PID` of the process")
	f.StringVar(&o.file, "file", "", "`FILE` of the runtime (libggml-cpu.so): every process that uses it")
	f = g.group("The trace")
	f.DurationVar(&o.duration, "duration", 10*time.Second, "`TIME` to trace; without it a terminal shows the screen")
	f.StringVar(&o.level, "level", "sched", "`LEVEL` of detail: token, graph, operator, tensor, barriers, sched, all, or details with + between them")
	f.Float64Var(&o.maxOverhead, "max-overhead", defaultOverhead, "`PERCENT` of its speed that the target may lose")
	f.BoolVar(&o.force, "force", false, "trace whatever it costs the target")
	f.BoolVar(&o.measure, "measure-overhead", false, "measure what watching costs before the trace: on and off in turn for 12 s while the target decodes")
	f.BoolVar(&o.roof, "roof", false, "measure this machine's bandwidth and arithmetic afterwards, and keep them for later traces: some seconds on all cores")
	f.StringVar(&o.catalogFile, "catalog", "", "YAML `FILE` with further CPUs, by whose data sheets operators are judged where nothing was measured")
	o.output.register(g, "every operator, layer, site and reason")
	f = g.group("Files")
	f.StringVar(&o.save, "save", "", "`FILE"+recordingSuffix+"` for the recording")
	f.StringVar(&o.chrome, "trace", "", "`FILE` for a trace that ui.perfetto.dev and chrome://tracing open")
	f.StringVar(&o.dot, "dot", "", "`FILE` for the graph of operators, for Graphviz")
	f.StringVar(&o.svg, "svg", "", "`FILE` for a picture of it")
	f.StringVar(&o.html, "html", "", "`FILE` for the report as one page with its plots")
}

// limit is the share of its speed that the target may lose; 0 is any.
func (o *traceOptions) limit() float64 {
	if o.force {
		return 0
	}
	return o.maxOverhead / 100
}

// owner is whom files are for.
func (o *traceOptions) owner() *wholefile.Owner { return wholefile.Behind(os.Geteuid(), o.env) }

// outputs are the files of the flags.
func (o *traceOptions) outputs() []namedFile {
	return []namedFile{{"--save", o.save}, {"--trace", o.chrome}, {"--dot", o.dot}, {"--svg", o.svg}, {"--html", o.html}}
}

// namedFile is a file with the flag that names it.
type namedFile struct{ flag, path string }

// check refuses what cannot be meant, before anything is looked at.
func (o *traceOptions) check() error {
	if err := fromEnvironment(o.flags, o.env); err != nil {
		return err
	}
	if err := o.output.check(); err != nil {
		return err
	}
	var err error
	if o.catalog, _, err = userCatalog(o.catalogFile); err != nil {
		return err
	}
	if o.detail, err = optrace.ParseDetail(o.level); err != nil {
		return usage("--level: %w", err)
	}
	o.levelGiven = o.flags.Changed("level")
	if err := o.number(); err != nil {
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
		return usage("a name, --pid and --file say one target: give one of them")
	case o.flags.Changed("pid") && o.pid <= 0:
		return usage("--pid must be a process, not %d", o.pid)
	case o.duration < minTrace || o.duration > maxTrace:
		return usage("--duration must be %v to %v, not %v", minTrace, maxTrace, o.duration)
	case math.IsNaN(o.maxOverhead) || o.maxOverhead <= 0:
		return usage("--max-overhead must be more than 0 per cent, not %v; --level token costs least", o.maxOverhead)
	case o.measure && o.detail&optrace.DetailOperator == 0:
		return usage("--measure-overhead is for levels with operators, not for --level %s", o.level)
	}
	if err := o.shown(); err != nil {
		return err
	}
	return checkFiles(o.outputs())
}

// shown refuses for a recording what only a trace that is made can heed.
func (o *traceOptions) shown() error {
	if !o.recording() {
		return nil
	}
	for _, name := range []string{"level", "duration", "max-overhead", "force", "measure-overhead", "roof"} {
		flag := o.flags.Lookup(name)
		if flag.Changed && flag.Annotations[fromVariable] == nil {
			return usage("--%s is for a trace that is made, and %s is one that was recorded: leave it out", name, o.name)
		}
	}
	return nil
}

// number takes a name that is a number and no file for the process that it is of, as kill
// does.
func (o *traceOptions) number() error {
	if o.name == "" || strings.Trim(o.name, "0123456789") != "" || o.recording() {
		return nil
	}
	if err := o.flags.Lookup("pid").Value.Set(o.name); err != nil || o.pid <= 0 || o.pid > math.MaxInt32 {
		return usage("--pid must be a process, not %s", o.name)
	}
	if o.flags.Changed("pid") {
		return usage("a name, --pid and --file say one target: give one of them")
	}
	o.name = ""
	o.flags.Lookup("pid").Changed = true
	return nil
}

// checkFiles says which of the files could not be written, or are one.
func checkFiles(files []namedFile) error {
	seen := map[string]string{}
	for _, f := range files {
		if f.path == "" {
			continue
		}
		if err := writable(f.path); err != nil {
			return usage("%s: %w", f.flag, err)
		}
		path := filepath.Clean(f.path)
		if other := seen[path]; other != "" {
			return usage("%s and %s name one file, %s: name two", other, f.flag, path)
		}
		seen[path] = f.flag
	}
	return nil
}
