package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/apply"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// goalOptions say what a change is judged by.
type goalOptions struct {
	goal      string
	slo       string
	precision string
	longest   time.Duration

	objectives []verdict.Objective // of slo, once checked
	near       float64             // of precision, a ratio
}

// autoOptions say who makes a change, and how far a run without keys may go.
type autoOptions struct {
	auto        bool
	dryRun      bool
	applyCmd    string
	inPlace     bool
	command     []string // behind --
	maxRestarts int
	maxDowntime time.Duration
	hours       string
	allow       string
	start       time.Duration
	countdown   time.Duration

	flags    *pflag.FlagSet
	launch   *launch.Config // of the command
	program  string         // of applyCmd, as a path
	allowed  []string       // of allow, spelled as flags
	from, to time.Duration  // of hours: times of day
}

// Defaults of a run that rooftop makes changes in.
const (
	defaultRestarts  = 5
	defaultPrecision = "3%"
	defaultCountdown = 10 * time.Second
	// leastRestarts is one for a change and one for the way back.
	leastRestarts = 2
	maxCountdown  = time.Hour
	minStart      = time.Second
	maxStart      = 6 * time.Hour
)

func (o *goalOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.goal, "goal", string(verdict.Throughput), "`WHAT` a change is to improve: throughput, latency or cost")
	f.StringVar(&o.slo, "slo", "", "`KEY=TIME,...` that must hold: ttft_p99=500ms,itl_p99=60ms; ttft, itl, tpot or e2e with _p50, _p90, _p95, _p99 or _mean")
	f.StringVar(&o.precision, "precision", defaultPrecision, "`SHARE` of a difference that matters: 3%, 0.03 or 3; measured until it is known as closely")
	f.DurationVar(&o.longest, "longest", engine.LoopLongest, "`TIME` of the longest measurement, where noise asks for it")
}

func (o *autoOptions) register(f *pflag.FlagSet) {
	f.BoolVar(&o.auto, "auto", false, "go on without keys, until nothing predicted is worth a restart")
	f.BoolVar(&o.dryRun, "dry-run", false, "measure, then show every step of the change and of the way back; touch nothing")
	f.BoolVar(&o.inPlace, "restart-in-place", false, "yes: stop the server's process and start it again with the change, its own command line, environment, folder, user and limits")
	f.StringVar(&o.applyCmd, "apply-cmd", "", "yes: run `PROGRAM` for each change, which restarts the server; it gets the change as JSON on stdin and in variables")
	f.IntVar(&o.maxRestarts, "max-restarts", defaultRestarts, "`N` restarts at most, ways back among them")
	f.DurationVar(&o.maxDowntime, "max-downtime", 0, "`TIME` without an answer at most, in all: a start that leaves the way back too little of it is put back (default no limit)")
	f.StringVar(&o.hours, "hours", "", "`FROM-TO`, local time, in which the server may be restarted: 22:00-06:00; what is not proven when they end is put back at once (default always)")
	f.StringVar(&o.allow, "allow-flags", "", "`FLAG,...` that may be changed, and no others; what can alter answers (KV cache type, quantization, speculation) only where it is named")
	f.DurationVar(&o.start, "start-timeout", apply.ReadyWithin, "`TIME` for a start, until /health answers")
	f.DurationVar(&o.countdown, "countdown", 0, "`TIME` between saying a change and making it (default 10s on the screen, else none)")
}

// defaults are those of a command that has no flags for a run without
// keys.
func (o *tuneOptions) defaults() {
	o.goal = goalOptions{goal: string(verdict.Throughput), precision: defaultPrecision, longest: engine.LoopLongest}
	o.auto = autoOptions{maxRestarts: defaultRestarts, start: apply.ReadyWithin}
}

// args takes the server's command, which stands behind --, and nothing else.
func (o *autoOptions) args(c *cobra.Command, args []string) error {
	at := c.ArgsLenAtDash()
	if at < 0 {
		at = len(args)
	}
	switch {
	case at > 0:
		return usage("%s takes no argument, but got %q; put -- before the command of a server", c.Name(), args[0])
	case at == len(args) && c.ArgsLenAtDash() >= 0:
		return usage("the server's command is missing behind --")
	case len(args) > 0:
		o.command = slices.Clone(args)
	}
	return nil
}

// check reads what was said of the goal.
func (o *goalOptions) check(f *pflag.FlagSet, first time.Duration) (err error) {
	switch verdict.Goal(o.goal) {
	case verdict.Throughput, verdict.Latency, verdict.Cost:
	default:
		return usage("--goal is throughput, latency or cost, not %q%s", o.goal, suggested(o.goal, string(verdict.Throughput), string(verdict.Latency), string(verdict.Cost)))
	}
	if o.objectives, err = parseObjectives(o.slo); err != nil {
		return err
	}
	if o.near, err = parsePrecision(o.precision); err != nil {
		return err
	}
	switch {
	case !f.Changed("longest"):
		o.longest = max(o.longest, first)
	case o.longest < first:
		return usage("--longest %v is shorter than --duration %v, the first look at a measurement", o.longest, first)
	case o.longest > maxDuration:
		return usage("--longest %v is too long: at most %v", o.longest, maxDuration)
	}
	return nil
}

// mode is who makes a change.
type mode string

// Modes; none is the person at the keys, by hand.
const (
	modeNone   mode = ""
	modeExec   mode = "exec"
	modeAttach mode = "attach"
	modeHook   mode = "hook"
)

func (o *autoOptions) mode() mode {
	switch {
	case o.command != nil:
		return modeExec
	case o.inPlace:
		return modeAttach
	case o.applyCmd != "":
		return modeHook
	}
	return modeNone
}

// unattended says that the run needs no keys.
func (o *autoOptions) unattended() bool { return o.auto || o.dryRun }

// check refuses what cannot be meant.
func (o *autoOptions) check() error {
	if err := o.oneMode(); err != nil {
		return err
	}
	if err := o.bounds(); err != nil {
		return err
	}
	if o.flags != nil && o.flags.Changed("allow-flags") && strings.TrimSpace(o.allow) == "" {
		return usage("--allow-flags names no flag: name those that may be changed, or leave it out for all that cannot alter answers")
	}
	var err error
	if o.from, o.to, err = parseHours(o.hours); err != nil {
		return err
	}
	if o.allowed, err = parseAllowed(o.allow); err != nil {
		return err
	}
	if o.applyCmd != "" {
		if o.program, err = programAt(o.applyCmd); err != nil {
			return err
		}
	}
	return o.readCommand()
}

// oneMode refuses two ways at once.
func (o *autoOptions) oneMode() error {
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
		return usage("%s: a server is restarted in one way, so give one of them", strings.Join(given, " and "))
	}
	if o.unattended() || o.flags == nil {
		return nil
	}
	for _, name := range []string{"max-restarts", "max-downtime", "hours", "allow-flags", "countdown"} {
		// A variable may stand for every run of this person.
		if f := o.flags.Lookup(name); f != nil && f.Changed && f.Annotations[fromVariable] == nil {
			return usage("--%s bounds what is done without keys: give it with --auto or --dry-run", name)
		}
	}
	return nil
}

func (o *autoOptions) bounds() error {
	switch {
	case o.maxRestarts < leastRestarts:
		return usage("--max-restarts %d: at least %d, one for a change and one for its way back", o.maxRestarts, leastRestarts)
	case o.flags != nil && o.flags.Changed("max-downtime") && o.maxDowntime <= 0:
		return usage("--max-downtime %v: give a time above zero", o.maxDowntime)
	case o.start < minStart || o.start > maxStart:
		return usage("--start-timeout %v: from %v to %v", o.start, minStart, maxStart)
	case o.countdown < 0 || o.countdown > maxCountdown:
		return usage("--countdown %v: from 0s to %v", o.countdown, maxCountdown)
	}
	return nil
}

// readCommand reads the server's command with its environment and config file.
func (o *autoOptions) readCommand() error {
	if o.command == nil {
		return nil
	}
	env := launch.Environ(os.Environ())
	c, err := launch.Parse(o.command, env, nil)
	if err != nil {
		return usage("-- %s: %w; give the command that starts the server, as in 'rooftop tune --auto -- vllm serve MODEL'", launch.Quote(o.command[0]), err)
	}
	if path := c.ConfigPath(); path != "" {
		text, err := readFile(path, launch.MaxConfigBytes)
		if err != nil {
			return usage("-- COMMAND: --config: %w", err)
		}
		if c, err = launch.Parse(o.command, env, text); err != nil {
			return usage("-- COMMAND: %w", err)
		}
	}
	o.launch = c
	return nil
}

// limits are the bounds of a run without keys.
func (o *autoOptions) limits() engine.Limits {
	return engine.Limits{Restarts: o.maxRestarts, Downtime: o.maxDowntime, From: o.from, To: o.to, Allow: o.allowed}
}

// pause is how long a change is told before it is made.
func (o *autoOptions) pause(kind viewKind) time.Duration {
	if o.flags != nil && o.flags.Changed("countdown") || kind != viewScreen {
		return o.countdown
	}
	return defaultCountdown
}

// programAt finds the program of a hook.
func programAt(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", usage("--apply-cmd: %w; give a program that may be run, without arguments", err)
	}
	return path, nil
}

// parseAllowed reads flags by name, in any spelling.
func parseAllowed(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	var known []string
	for _, f := range catalog.Default().Flags() {
		known = append(known, "--"+strings.ReplaceAll(f.Name, "_", "-"))
	}
	var out []string
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		flag := "--" + strings.ReplaceAll(strings.TrimLeft(word, "-"), "_", "-")
		if !slices.Contains(known, flag) {
			return nil, usage("--allow-flags: vLLM has no flag %q%s", word, suggested(flag, known...))
		}
		if !slices.Contains(out, flag) {
			out = append(out, flag)
		}
	}
	return out, nil
}
