package autopilot

import (
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/apply"
	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// GoalOptions are the criteria for judging a change.
type GoalOptions struct {
	Goal      string
	slo       []string
	precision string
	Longest   time.Duration

	Objectives []verdict.Objective // parsed from slo by Check
	Precision  float64             // parsed from precision by Check, a ratio
}

// Options say how changes are made, and limit a run without keys.
type Options struct {
	Auto        bool
	DryRun      bool
	applyCmd    string
	inPlace     bool
	forceOwned  bool
	Canary      bool
	command     []string // after --
	MaxRestarts int
	maxDowntime time.Duration
	allow       string
	start       time.Duration
	countdown   time.Duration

	flags   *pflag.FlagSet
	Launch  *launch.Config // parsed from command
	Program string         // absolute path of applyCmd
	allowed []string       // parsed from allow, as flags
}

// Defaults and limits of the options.
const (
	defaultRestarts  = 5
	defaultPrecision = "3%"
	defaultCountdown = 10 * time.Second
	// minRestarts is one for a change and one for its revert.
	minRestarts  = 2
	maxCountdown = time.Hour
	minStart     = time.Second
	maxStart     = 6 * time.Hour
)

// Register adds the flags of the goal.
func (o *GoalOptions) Register(f *pflag.FlagSet) {
	cli.Choice(f, &o.Goal, "goal", string(verdict.Throughput), "`WHAT` a change should improve: throughput, latency or cost",
		string(verdict.Throughput), string(verdict.Latency), string(verdict.Cost))
	f.StringArrayVar(&o.slo, "slo", nil, "`KEY=TIME,...` that must hold: ttft_p99=500ms,itl_p99=60ms; ttft, itl, tpot or e2e with _p50, _p90, _p95, _p99 or _mean (repeatable)")
	f.StringVar(&o.precision, "precision", defaultPrecision, "smallest `SHARE` of a difference that matters: 3%, 0.03 or 3; a measurement continues until it is that precise")
	f.DurationVar(&o.Longest, "longest", loop.DefaultLongest, "`TIME` of the longest measurement, if noise requires it")
}

// Register adds the flags of the changes to f. all has all flags of the command.
func (o *Options) Register(f, all *pflag.FlagSet) {
	o.flags = all
	f.BoolVar(&o.Auto, "auto", false, "continue without keys until no change is predicted to be worth a restart")
	f.BoolVar(&o.DryRun, "dry-run", false, "measure, then show every step of the change and of its revert; change nothing")
	f.BoolVar(&o.inPlace, "restart-in-place", false, "stop the server's process and start it again with the change, with the same command line, environment, directory, user and limits; systemd restarts its services, Docker its containers, and Kubernetes a workload of --kube")
	f.BoolVar(&o.forceOwned, "force-owned", false, "change a Kubernetes workload even if Helm, Argo CD, Flux or an operator also manages it and may revert the change")
	f.BoolVar(&o.Canary, "canary", false, "try each change first on one more pod of the workload of --kube, measured at the same time as the others; the cluster needs room for that pod")
	f.StringVar(&o.applyCmd, "apply-cmd", "", "run `PROGRAM` for each change; it restarts the server, and gets the change as JSON on stdin and in variables")
	f.IntVar(&o.MaxRestarts, "max-restarts", defaultRestarts, "at most `N` restarts, including reverts")
	f.DurationVar(&o.maxDowntime, "max-downtime", 0, "at most `TIME` of downtime in total; a start that leaves too little of it for a revert is reverted (default no limit)")
	f.StringVar(&o.allow, "allow-flags", "", "change only `FLAG,...`; a flag that can alter answers (KV cache type, quantization, speculation) is changed only if it is named here")
	f.DurationVar(&o.start, "start-timeout", apply.ReadyWithin, "`TIME` that a start may take, until /health answers")
	f.DurationVar(&o.countdown, "countdown", 0, "`TIME` between announcing a change and making it (default 10s on the screen, else none)")
}

// DefaultGoal returns the goal of a command without flags for it.
func DefaultGoal() GoalOptions {
	return GoalOptions{Goal: string(verdict.Throughput), precision: defaultPrecision, Longest: loop.DefaultLongest}
}

// Default returns the options of a command without flags for changes.
func Default() Options { return Options{MaxRestarts: defaultRestarts, start: apply.ReadyWithin} }

// InPlace returns the options of a command that restarts a server where it runs, without further flags.
func InPlace() Options {
	o := Default()
	o.inPlace = true
	return o
}

// Args reads the server's command after --. dash is the number of arguments before --,
// negative without --. Other arguments are a usage error.
func (o *Options) Args(name string, args []string, dash int) error {
	switch {
	case dash != 0 && len(args) > 0:
		return cli.Usagef("%s takes no argument, but got %q; put -- before the command of a server", name, args[0])
	case dash >= 0 && len(args) == 0:
		return cli.Usagef("the server's command is missing after --")
	case len(args) > 0:
		o.command = slices.Clone(args)
	}
	return nil
}

// Check parses and validates the options of the goal. first is the duration of the first
// measurement.
func (o *GoalOptions) Check(f *pflag.FlagSet, first time.Duration) (err error) {
	if o.Objectives, err = ParseObjectives(strings.Join(o.slo, ",")); err != nil {
		return err
	}
	if o.Precision, err = parsePrecision(o.precision); err != nil {
		return err
	}
	switch {
	case !f.Changed("longest"):
		o.Longest = max(o.Longest, first)
	case o.Longest < first:
		return cli.Usagef("--longest %v is shorter than --duration %v, the first look at a measurement", o.Longest, first)
	case o.Longest > attach.MaxDuration:
		return cli.Usagef("--longest %s is too long: give at most %s", cli.FormatTime(o.Longest), cli.FormatTime(attach.MaxDuration))
	}
	return nil
}

// Mode is how changes are made.
type Mode string

// Modes. With ModeNone the user makes changes by hand.
const (
	ModeNone   Mode = ""
	ModeExec   Mode = "exec"
	ModeAttach Mode = "attach"
	ModeHook   Mode = "hook"
)

// Mode returns how changes are made.
func (o *Options) Mode() Mode {
	switch {
	case o.command != nil:
		return ModeExec
	case o.inPlace:
		return ModeAttach
	case o.applyCmd != "":
		return ModeHook
	}
	return ModeNone
}

// Unattended reports whether the run needs no keys.
func (o *Options) Unattended() bool { return o.Auto || o.DryRun }

// Check validates and parses the options. It returns a usage error.
func (o *Options) Check() error {
	if err := o.oneMode(); err != nil {
		return err
	}
	if err := o.bounds(); err != nil {
		return err
	}
	if o.flags != nil && o.flags.Changed("allow-flags") && strings.TrimSpace(o.allow) == "" {
		return cli.Usagef("--allow-flags names no flag: name those that may be changed, or leave it out for all that cannot alter answers")
	}
	var err error
	if o.allowed, err = parseAllowed(o.allow); err != nil {
		return err
	}
	if o.applyCmd != "" {
		if o.Program, err = apply.FindProgram(o.applyCmd); err != nil {
			return cli.Usagef("%w", err)
		}
	}
	return o.readCommand()
}

// oneMode checks that at most one mode is given, and that limits are given only with --auto
// or --dry-run.
func (o *Options) oneMode() error {
	var given []string
	if o.command != nil {
		given = append(given, "-- COMMAND")
	}
	if o.inPlace {
		given = append(given, "--restart-in-place")
	}
	if o.applyCmd != "" {
		given = append(given, "--apply-cmd")
	}
	if len(given) > 1 {
		return cli.Usagef("%s: a server is restarted in one way, so give one of them", strings.Join(given, " and "))
	}
	if o.Canary && !o.inPlace {
		return cli.Usagef("--canary tries a change on one more pod before Kubernetes replaces the others: give it with --kube and --restart-in-place")
	}
	if o.Unattended() || o.flags == nil {
		return nil
	}
	for _, name := range []string{"max-restarts", "max-downtime", "allow-flags", "countdown"} {
		// A variable may be set for all runs of this user, so only flags count.
		if f := o.flags.Lookup(name); cli.OnCommandLine(f) {
			return cli.Usagef("--%s limits a run without keys: give it with --auto or --dry-run", name)
		}
	}
	return nil
}

func (o *Options) bounds() error {
	switch {
	case o.MaxRestarts < minRestarts:
		return cli.Usagef("--max-restarts %d: at least %d, one for a change and one for its revert", o.MaxRestarts, minRestarts)
	case o.flags != nil && o.flags.Changed("max-downtime") && o.maxDowntime <= 0:
		return cli.Usagef("--max-downtime %v: give a time above zero", o.maxDowntime)
	case o.start < minStart || o.start > maxStart:
		return cli.Usagef("--start-timeout %s: give %s to %s", cli.FormatTime(o.start), cli.FormatTime(minStart), cli.FormatTime(maxStart))
	case o.countdown < 0 || o.countdown > maxCountdown:
		return cli.Usagef("--countdown %s: give 0s to %s", cli.FormatTime(o.countdown), cli.FormatTime(maxCountdown))
	}
	return nil
}

// readCommand parses the server's command with its environment and config file.
func (o *Options) readCommand() error {
	if o.command == nil {
		return nil
	}
	env := launch.Environ(os.Environ())
	c, err := launch.Parse(o.command, env, nil)
	if err != nil {
		return cli.Usagef("-- %s: %w; give the command that starts the server, as in 'rooftop tune --auto -- vllm serve MODEL'", launch.Quote(o.command[0]), err)
	}
	if path := c.ConfigPath(); path != "" {
		text, err := cli.ReadFile(path, launch.MaxConfigBytes)
		if err != nil {
			return cli.Usagef("-- COMMAND: --config: %w", err)
		}
		if c, err = launch.Parse(o.command, env, text); err != nil {
			return cli.Usagef("-- COMMAND: %w", err)
		}
	}
	o.Launch = c
	return nil
}

// Limits returns the limits of a run without keys.
func (o *Options) Limits() loop.Limits {
	return loop.Limits{Restarts: o.MaxRestarts, Downtime: o.maxDowntime, Allow: o.allowed}
}

// Pause returns how long a change is announced before it is made.
func (o *Options) Pause(screen bool) time.Duration {
	if o.flags != nil && o.flags.Changed("countdown") || !screen {
		return o.countdown
	}
	return defaultCountdown
}

// parseAllowed parses a list of engines' flags, in any spelling.
func parseAllowed(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	var known []string
	var names []string
	for _, g := range catalog.Engines() {
		names = append(names, g.Name)
		for _, f := range g.Flags() {
			known = append(known, "--"+strings.ReplaceAll(f.Name, "_", "-"))
		}
	}
	var out []string
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		flag := "--" + strings.ReplaceAll(strings.TrimLeft(word, "-"), "_", "-")
		if !slices.Contains(known, flag) {
			return nil, cli.Usagef("--allow-flags: no engine (%s) has a flag %q%s", strings.Join(names, ", "), word, cli.Suggestion(flag, known...))
		}
		if !slices.Contains(out, flag) {
			out = append(out, flag)
		}
	}
	return out, nil
}
