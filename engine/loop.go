package engine

import (
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Loop is the closed loop as a machine without a clock: attach, measure, name one
// change, wait for it or have it made, let the server settle, measure again,
// compare, keep or go back, and on to the next. Inputs come in with their time;
// out come a snapshot to look at and actions to perform, whose results come back as
// inputs. The same inputs give the same snapshots and actions. It is not safe for
// concurrent use; the snapshots that it hands out are never touched again.
type Loop struct {
	plan     LoopPlan
	phases   [NumPhases]behaviour
	commands [NumCommands]command
	now      time.Duration
	begun    bool
	out      []Action
	seen     Snapshot  // the parts of the next snapshot
	given    *Snapshot // what was handed out last, nil once it is out of date

	watch    watch
	server   server
	life     life
	base     base
	unsure   []unsure
	starved  busyShare
	trial    trial
	advice   advice
	pilot    pilot
	renewal  renewal
	was      Phase         // what went on when the server went down
	wasSince time.Duration // and since when
	downAt   time.Duration // when it went down
	outage   time.Duration // how long it did not answer, around the last restart
	paused   time.Duration // since when

	kept     configuration // what the baseline was measured with
	running  configuration // what runs
	shown    int           // iteration whose configuration runs, 0 the first
	returns  int           // iteration whose configuration is kept
	restarts int           // seen or made
	rounds   int           // changes that rooftop made
	failure  string        // why a change could not be made

	scratch    []Window // of a diagnosis under way
	score      Score    // of the iterations, as of the latest change of one
	iterations []Iteration
	noise      bounded[float64] // differences of logarithms of what ratios are of
	ratios     bounded[float64]
	journal    bounded[Entry]
	points     bounded[Point]
	marks      bounded[Mark]
}

// Bounds of what a loop remembers.
const (
	keepEntries    = 2000
	keepPoints     = int(time.Hour / WindowLength)
	keepMarks      = 500
	keepNoise      = 100
	keepIterations = 200
	keepNotes      = 20
)

// LoopPlan is what a loop is started with.
type LoopPlan struct {
	Started time.Time // wall clock at time 0
	Version string    // of rooftop
	Rules   []Rule
	// Measure is the length of one measurement, at least four windows.
	Measure time.Duration
	// Watch says what is looked for while no server answers: "http://localhost:8000".
	Watch string
	// Hands says whether rooftop can change this server itself; NoHands is why not,
	// in a sentence. Without hands the loop waits for the engineer to restart it.
	Hands   bool
	NoHands string
	// Auto needs no keys: it applies what is recommended, keeps what is better and
	// puts back what is not, and ends when nothing is left. It needs Hands.
	Auto bool
	// Rounds bounds the changes of an Auto loop; 0 is no bound.
	Rounds int
	// Limits bound what an Auto loop may do; what is used up is counted in them.
	Limits Limits
	// Countdown is how long an Auto loop waits between saying what it will do and
	// doing it: somebody may hold it. 0 does not wait.
	Countdown time.Duration
	// Start is how long a start of this server took, 0 where that is not known: a
	// change is begun only where Limits.Downtime holds it and its way back.
	Start time.Duration
	// DryRun ends an Auto loop where it would change something for the first time.
	DryRun bool

	// Goal, Objectives and Precision are what verdicts are by (engine/verdict).
	Goal       verdict.Goal
	Objectives []verdict.Objective
	Precision  float64
	// Longest bounds the measurement of one trial; 0 is LoopLongest. Measure is when
	// it is looked at first.
	Longest time.Duration
	// Repeats are differences of log throughput between starts of one configuration
	// of this server, of earlier runs.
	Repeats []float64
	// Foretold are predictions of earlier runs on this server with what came true:
	// misses correct those to come.
	Foretold []Foretold
}

// Foretold is a prediction of the goal beside what was measured, as ratios.
type Foretold struct {
	Finding        FindingID
	Flag           string
	Low, Mid, High float64
	Measured       float64
}

// LoopLongest bounds the measurement of a trial where the plan does not.
const LoopLongest = 5 * time.Minute

// LoopMeasure is the length of a measurement where the plan names none.
const LoopMeasure = 20 * time.Second

// measureWindows is how many windows a measurement has at least: as many as the
// gate of a rule needs, and one more. measureLeast is how long they are where pages
// are fast.
const (
	measureWindows = leastWindows + 1
	measureLeast   = measureWindows * WindowLength
)

// NewLoop returns a loop that has not begun.
func NewLoop(p LoopPlan) *Loop {
	if p.Measure == 0 {
		p.Measure = LoopMeasure
	}
	p.Measure = max(p.Measure, measureLeast)
	if p.Longest == 0 {
		p.Longest = LoopLongest
	}
	p.Longest = max(p.Longest, p.Measure)
	l := &Loop{
		plan:     p,
		phases:   behaviours(),
		commands: commands(),
		server:   server{hands: p.Hands, noHands: p.NoHands},
		noise:    bounded[float64]{most: keepNoise},
		ratios:   bounded[float64]{most: keepNoise},
		journal:  bounded[Entry]{most: keepEntries},
		points:   bounded[Point]{most: keepPoints},
		marks:    bounded[Mark]{most: keepMarks},
	}
	l.seen = Snapshot{Started: p.Started, Version: p.Version, Watch: p.Watch}
	l.watch.sources = sourcesAtStart()
	l.publish()
	return l
}

// Step takes one input at its time, which never runs backwards, and returns what
// to do about it, in order. Before the first input, Begin starts it.
func (l *Loop) Step(now time.Duration, in Input) []Action {
	if l.seen.Phase == PhaseDone {
		return nil
	}
	l.now = max(l.now, now)
	l.out = nil
	switch in := in.(type) {
	case Begin:
		l.begin()
	case Attached:
		l.attached(in)
	case AttachFailed:
		l.attachFailed(in.Why)
	case Sampled:
		l.sampled(in.Sample)
	case Observed:
		l.observed(in)
	case Applied:
		l.applied(in)
	case Noted:
		l.noted(in)
	case Pressed:
		l.pressed(in.Command)
	}
	l.patience()
	l.publish()
	return l.out
}

// Snapshot is the loop as of the last step. It is immutable.
func (l *Loop) Snapshot() *Snapshot {
	if l.given == nil {
		s := l.seen
		l.given = &s
	}
	return l.given
}

// publish brings the parts of the snapshot up to date.
func (l *Loop) publish() {
	l.given = nil
	s := &l.seen
	s.Seq++
	s.Now = l.now
	s.Progress = l.progress()
	s.Sources = l.watch.states(l.now)
	s.Iterations = l.iterations
	s.Noise = l.ratios.view()
	s.Trial = l.underway()
	s.Auto, s.Limits, s.Score = l.plan.Auto, l.limits(), l.score
	s.Points, s.Marks = l.points.view(), l.marks.view()
	s.Journal, s.Dropped = l.journal.view(), l.journal.dropped()
	s.Kept, s.Hands = l.kept.command, l.server.hands
	s.Can = l.available()
}

func (l *Loop) begin() {
	if l.begun {
		return
	}
	l.begun = true
	l.enter(PhaseAttach)
	l.attach(0)
}

// enter begins a phase.
func (l *Loop) enter(p Phase) {
	l.seen.Phase, l.seen.Since = p, l.now
	l.seen.Ask = ""
	if p != PhaseWaiting {
		l.calledOff()
	}
	l.life.waits = ""
	l.pilot.told, l.pilot.wide = "", 0
}

// do adds an action.
func (l *Loop) do(a Action) { l.out = append(l.out, a) }

// tell hands over an event and writes it into the journal, if it has a text.
func (l *Loop) tell(level Level, e Event) {
	e.T = l.now
	if e.Text != "" {
		l.write(level, e.Kind, e.Text)
	}
	l.do(Tell{Event: e})
}

// write adds an entry to the journal.
func (l *Loop) write(level Level, kind EventKind, text string) {
	l.record(Entry{Level: level, Kind: kind, Text: text})
}

// record adds an entry to the journal with its number and time.
func (l *Loop) record(e Entry) {
	e.Seq, e.T = len(l.journal.all)+l.journal.gone, l.now
	l.journal.add(e)
}

func (l *Loop) mark(kind MarkKind, text string) { l.marks.add(Mark{T: l.now, Kind: kind, Text: text}) }

func (l *Loop) noted(in Noted) {
	e := Entry{Level: LevelInfo, Noted: true, Text: in.Text}
	if in.Bad {
		e.Level = LevelBad
	}
	l.record(e)
}

// iteration is the number of the latest iteration, 0 before the first.
func (l *Loop) iteration() int {
	if n := len(l.iterations); n > 0 {
		return l.iterations[n-1].N
	}
	return 0
}

// change alters the latest iteration in a copy: the one before was handed out.
func (l *Loop) change(alter func(*Iteration)) {
	if len(l.iterations) == 0 {
		return
	}
	l.iterations = slices.Clone(l.iterations)
	alter(&l.iterations[len(l.iterations)-1])
	l.score = score(l.iterations)
}

// add appends an iteration and returns its number.
func (l *Loop) add(it Iteration) int {
	it.N = l.iteration() + 1
	from := max(0, len(l.iterations)+1-keepIterations)
	l.iterations = append(slices.Clone(l.iterations[from:]), it)
	return it.N
}
