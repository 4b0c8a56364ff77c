package loop

import (
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Loop is the closed loop as a state machine without a clock: attach, measure, recommend a
// change, wait for it or apply it, let the server settle, measure again, compare, keep or
// revert, and continue with the next. Inputs carry their time. Each step returns actions to
// perform, whose results come back as inputs, and updates the snapshot. The same inputs give
// the same snapshots and actions. A Loop is not safe for concurrent use, but its snapshots are
// immutable.
type Loop struct {
	shared
	begun     bool
	seq       uint64
	handedOut *Snapshot // last snapshot returned, nil if it is out of date

	conn      connection
	baseline  baselines
	settling  settling
	measuring measuring
	trials    trials
	applying  applying
	canaries  canaries
	advisor   advisor
	budget    budget
	auto      autopilot
	controls  controls
	ending    ending
	phases    [NumPhases]phaseBehaviour
}

// shared is what all parts of a loop read, and record their steps in. Everything else belongs to
// one part, and others change it through its methods or, rarely, one field at a time.
type shared struct {
	plan Plan
	recorder
	history
	stage
	configurations
	server  server          // changed by the connection
	current incarnation     // filled by the connection
	scratch []engine.Window // windows of a diagnosis in progress
}

// diagnose diagnoses windows of the current start.
func (s *shared) diagnose(windows []engine.Window) *engine.Diagnosis {
	return s.diagnoseAs(s.server.facts, windows)
}

// diagnoseAs diagnoses windows of a server with these facts.
func (s *shared) diagnoseAs(known engine.Facts, windows []engine.Window) *engine.Diagnosis {
	begun := windows[0].Start
	s.scratch = append(s.scratch[:0], windows...)
	for i := range s.scratch {
		s.scratch[i].Start -= begun
	}
	d := engine.Diagnose(engine.Request{
		Started: s.plan.Started.Add(begun), Duration: span(windows), Version: s.plan.Version,
		Target: s.server.Target, Facts: known, Windows: s.scratch, Rules: s.plan.Rules,
		Missing: s.server.Missing, Notes: slices.Clip(s.server.allNotes), GPUWhy: s.server.GPUWhy, Objectives: s.plan.Objectives,
	})
	return &d
}

// Bounds on the history that a loop keeps.
const (
	keepEntries    = 2000
	keepPoints     = int(time.Hour / engine.WindowLength)
	keepMarks      = 500
	keepNoise      = 100
	keepIterations = 200
	keepNotes      = 20
)

// Plan configures a loop. Its JSON, without the parts that belong to the program, begins the
// recording of a live session.
type Plan struct {
	Started time.Time     `json:"-"` // wall clock at time 0
	Version string        `json:"-"` // of rooftop
	Rules   []engine.Rule `json:"-"`
	// Measure is the duration of one measurement, at least four windows.
	Measure time.Duration `json:"measure"`
	// Watch names the server that rooftop looks for while no server answers, such as "http://localhost:8000".
	Watch string `json:"watch"`
	// CanApply states whether rooftop can change this server; CannotApply is a sentence on why
	// not. The loop then waits for the engineer to restart it.
	CanApply    bool   `json:"hands"`
	CannotApply string `json:"no_hands,omitempty"`
	// Auto runs without commands: the loop applies recommendations, keeps improvements, reverts
	// other changes, and ends when no recommendation is left. It needs CanApply.
	Auto bool `json:"auto,omitempty"`
	// Rounds limits the number of changes of an Auto loop; 0 is unlimited.
	Rounds int `json:"rounds,omitempty"`
	// Limits bound what an Auto loop may do.
	Limits Limits `json:"limits,omitzero"`
	// Countdown is the time between announcing a change of an Auto loop and making it, in which
	// the user may pause it. 0 makes it at once.
	Countdown time.Duration `json:"countdown,omitempty"`
	// Start is how long a start of this server took before, 0 if unknown. A change is made only
	// if Limits.Downtime allows for it and its revert.
	Start time.Duration `json:"start,omitempty"`
	// Canary tries each change on one more copy of the server, beside the others and under the same traffic,
	// before it is made to all.
	Canary bool `json:"canary,omitempty"`
	// DryRun ends an Auto loop before its first change.
	DryRun bool `json:"dry_run,omitempty"`

	// Goal, Objectives and Precision configure the verdicts (engine/verdict).
	Goal       verdict.Goal        `json:"goal,omitempty"`
	Objectives []verdict.Objective `json:"objectives,omitempty"`
	Precision  float64             `json:"precision,omitempty"`
	// Longest limits the measurement of one trial; 0 is DefaultLongest. Measure is the time of
	// the first look.
	Longest time.Duration `json:"longest,omitempty"`
	// Stable is how long a kept configuration must run, from its start, before the next change of an
	// Auto loop or its end; 0 is DefaultStable.
	Stable time.Duration `json:"stable,omitempty"`
	// Repeats are differences in log throughput between starts of one configuration of this
	// server, from earlier runs.
	Repeats []float64 `json:"repeats,omitempty"`
}

// DefaultLongest is the default of Plan.Longest.
const DefaultLongest = 5 * time.Minute

// DefaultStable is the default of Plan.Stable: crashes under load happen within a minute or two.
const DefaultStable = 75 * time.Second

// DefaultMeasure is the default of Plan.Measure.
const DefaultMeasure = 20 * time.Second

// measureWindows is the least number of windows of a measurement: one more than a rule needs
// to be significant. measureLeast is their duration if pages are fast.
const (
	measureWindows = engine.LeastWindows + 1
	measureLeast   = measureWindows * engine.WindowLength
)

// New returns a loop that has not begun. Its first input must be Begin.
func New(p Plan) *Loop {
	if p.Measure == 0 {
		p.Measure = DefaultMeasure
	}
	p.Measure = max(p.Measure, measureLeast)
	if p.Longest == 0 {
		p.Longest = DefaultLongest
	}
	p.Longest = max(p.Longest, p.Measure)
	if p.Stable == 0 {
		p.Stable = DefaultStable
	}
	l := &Loop{shared: shared{
		plan:   p,
		server: server{Attached: Attached{CanApply: p.CanApply, CannotApply: p.CannotApply}},
		recorder: recorder{
			journal: bounded[Entry]{most: keepEntries},
			points:  bounded[Point]{most: keepPoints},
			marks:   bounded[Mark]{most: keepMarks},
		},
	}}
	l.connectParts()
	l.publish()
	return l
}

// connectParts gives each part what is shared, and the other parts that it uses.
func (l *Loop) connectParts() {
	s := &l.shared
	s.stage = stage{clock: &s.recorder, entered: l.phaseEntered}
	l.conn = connection{shared: s, baseline: &l.baseline, trials: &l.trials, applying: &l.applying, advisor: &l.advisor, budget: &l.budget, auto: &l.auto, phases: &l.phases}
	l.conn.watch.sources = sourcesAtStart()
	l.baseline = baselines{shared: s, trials: &l.trials, advisor: &l.advisor, auto: &l.auto, noise: bounded[float64]{most: keepNoise}, ratios: bounded[float64]{most: keepNoise}}
	l.settling = settling{shared: s, measuring: &l.measuring, trials: &l.trials, advisor: &l.advisor}
	l.measuring = measuring{shared: s, baseline: &l.baseline, settling: &l.settling, trials: &l.trials}
	l.trials = trials{shared: s, conn: &l.conn, baseline: &l.baseline, settling: &l.settling, applying: &l.applying, canaries: &l.canaries, advisor: &l.advisor, budget: &l.budget, auto: &l.auto, ending: &l.ending}
	l.canaries = canaries{shared: s, conn: &l.conn, baseline: &l.baseline, measuring: &l.measuring, trials: &l.trials, advisor: &l.advisor, auto: &l.auto, ending: &l.ending}
	l.applying = applying{shared: s, conn: &l.conn, trials: &l.trials, advisor: &l.advisor, budget: &l.budget, auto: &l.auto, ending: &l.ending}
	l.advisor = advisor{shared: s, baseline: &l.baseline, trials: &l.trials, budget: &l.budget}
	l.budget = budget{plan: &s.plan, recorder: &s.recorder}
	l.auto = autopilot{shared: s, conn: &l.conn, baseline: &l.baseline, trials: &l.trials, applying: &l.applying, canaries: &l.canaries, advisor: &l.advisor, budget: &l.budget, ending: &l.ending}
	l.ending = ending{shared: s, conn: &l.conn, baseline: &l.baseline, trials: &l.trials, applying: &l.applying, advisor: &l.advisor, budget: &l.budget, auto: &l.auto}
	l.controls = controls{loop: l}
	l.controls.commands = l.controls.table()
	l.phases = l.behaviours()
}

// Step handles one input and returns the actions to perform, in order. The time now must not
// decrease. The first input must be Begin.
func (l *Loop) Step(now time.Duration, in Input) []Action {
	if l.phase == PhaseDone {
		return nil
	}
	l.now = max(l.now, now)
	l.out = nil
	switch in := in.(type) {
	case Begin:
		l.begin()
	case Attached:
		l.conn.attached(in)
	case AttachFailed:
		l.conn.attachFailed(in)
	case Sampled:
		l.conn.sampled(in.Sample)
	case Observed:
		l.conn.observed(in)
	case Applied:
		l.applying.applied(in)
	case CanaryStarted:
		l.canaries.started(in)
	case CanarySampled:
		l.canaries.sampled(in)
	case CanaryEnded:
		l.canaries.ended(in)
	case Noted:
		l.noted(in)
	case Pressed:
		l.controls.pressed(in.Command)
	}
	l.auto.checkPatience()
	l.publish()
	return l.out
}

// publish counts the step, and lets its state be the next snapshot.
func (l *Loop) publish() {
	l.handedOut = nil
	l.seq++
}

// Snapshot returns the state after the last step. It is immutable.
func (l *Loop) Snapshot() *Snapshot {
	if l.handedOut != nil {
		return l.handedOut
	}
	c, v, ill := &l.conn, &l.server, l.condition()
	advice, quiet, preliminary, then := l.advisor.advice, l.advisor.quiet, l.baseline.preliminary(), ""
	if ill.Ill() {
		advice, quiet, preliminary, then = nil, ill.String(), "", l.auto.unlessRecovers()
	}
	l.handedOut = &Snapshot{
		Seq: l.seq, Now: l.now, Started: l.plan.Started, Version: l.plan.Version, Watch: l.plan.Watch,
		Phase: l.phase, Since: l.since, Progress: l.progress(), Paused: l.paused, Ask: l.asked,
		Attached: v.found, AttachWhy: c.attachWhy, Starting: c.starting && l.phase == PhaseDown, Target: v.Target, Facts: v.facts, Missing: slices.Clip(v.Missing), Notes: v.allNotes,
		GPUWhy: v.GPUWhy, Launch: v.launch, Kept: l.kept.command, CanApply: v.CanApply, RevertsFirst: l.ending.revertsFirst(),
		Page: c.page, GPU: c.gpu, Processes: c.processes, Problems: c.problems, Sources: c.watch.states(l.now),
		Live: l.current.live, Baseline: l.baseline.diagnosis, Advice: advice, Firm: l.baseline.firm && preliminary == "", Preliminary: preliminary, Quiet: quiet, Condition: ill, Silence: l.silence(), UnlessRecovers: then,
		Iterations: l.iterations, RunningIteration: l.runningIteration, Trial: l.measuring.underway(), Auto: l.plan.Auto, DryRun: l.plan.DryRun, Held: l.auto.held, Pending: l.auto.pendingAction.announced(),
		Limits: l.budget.limits(), Score: l.score, Noise: l.baseline.ratios.view(),
		Points: l.points.view(), Marks: l.marks.view(), Journal: l.journal.view(), Dropped: l.journal.dropped(),
		Objectives: l.plan.Objectives, Can: l.controls.available(), Finished: l.ending.finished,
	}
	return l.handedOut
}

func (l *Loop) begin() {
	if l.begun {
		return
	}
	l.begun = true
	l.enterPhase(PhaseAttach)
	l.conn.attach(0)
}
