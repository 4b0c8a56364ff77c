package journal

import (
	"cmp"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// State is the state of the last run of a journal: what should run, and what may run instead.
type State struct {
	Run  string // "" if the journal has none
	Open bool   // begun and not ended

	Begun   time.Time
	Last    time.Time // time of its last record
	Seq     int       // sequence number of the journal's last record
	Version string
	Mode    string

	// Kept is the configuration that should run.
	Kept Config
	// Next is the configuration of the change in progress; the zero Config is none.
	Next  Config
	Stage Stage
	// Revert means that the change in progress restores Kept.
	Revert    bool
	Iteration int
	// Unkept are the changes to Kept that may be in place: each flag once, with its value in Kept.
	Unkept []engine.Change

	// Processes were found or started in this run, oldest first, without a record of their end.
	Processes []Running
	// Launches are all launch files named by records of this run.
	Launches []string
	// Touched means that something was changed, or was about to be.
	Touched bool
	// NothingToRun means that no server ran before the run, and that the server it started has ended
	// properly: no server should run.
	NothingToRun bool
}

// Config is a configuration of the server.
type Config struct {
	Launch  string // file of the exact launch, "" if unknown
	Command string // redacted
	Changes []engine.Change
}

// Running is a process and its launch.
type Running struct {
	Process
	Launch string // "" if unknown
	Ready  bool   // it answered
	Ours   bool   // started by rooftop as a session leader
}

// Stage is the progress of a change.
type Stage uint8

// Stages of a run.
const (
	// StageStable means that no change is in progress and Kept runs.
	StageStable Stage = iota
	// StageStopping means that a change was recorded. The server may have received the signal to stop.
	StageStopping
	// StageDown means that the server has stopped. Files may have changed, and another server may have
	// been started without a record.
	StageDown
	// StageStarting means that Next was started and has not answered yet.
	StageStarting
	// StageTrial means that Next answers.
	StageTrial
	// StageFailed means that the change failed, and no record shows that Kept runs again.
	StageFailed
)

var stageNames = [...]string{StageStable: "whole", StageStopping: "going", StageDown: "down", StageStarting: "up", StageTrial: "trying", StageFailed: "undone"}

// String returns the name of the stage.
func (s Stage) String() string { return stageNames[min(s, StageFailed)] }

// Settled reports whether nothing needs to be restored: no run is open, or Kept runs and no change is
// in progress.
func (s *State) Settled() bool { return !s.Open || s.Stage == StageStable }

// Reduce returns the state that records lead to.
func Reduce(records []Record) State {
	var s State
	for i := range records {
		s.add(&records[i])
	}
	return s
}

// Add applies one more record.
func (s *State) Add(r Record) { s.add(&r) }

func (s *State) add(r *Record) {
	s.Seq = r.Seq
	if r.Run != s.Run || !s.Open && r.Kind == Begin {
		// A run begins after the previous one: its processes do not count here.
		s.begin(r)
	}
	s.Last = r.Time
	if r.Launch != "" && !slices.Contains(s.Launches, r.Launch) {
		s.Launches = append(slices.Clone(s.Launches), r.Launch)
	}
	if act, ok := acts[r.Kind]; ok {
		act(s, r)
	}
}

// begin opens the run of a record.
func (s *State) begin(r *Record) {
	*s = State{Run: r.Run, Seq: r.Seq, Open: true, Begun: r.Time}
}

// acts are the effects of each kind of record. Other kinds, such as those of a newer rooftop, have
// none.
var acts = map[Kind]func(*State, *Record){
	Begin:    (*State).begun,
	Intent:   (*State).intend,
	Stopped:  (*State).stopped,
	Started:  (*State).started,
	Ready:    (*State).ready,
	Failed:   (*State).failed,
	Kept:     (*State).keep,
	Reverted: (*State).keptRunsAgain,
	Recover:  (*State).keptRunsAgain,
	End:      func(s *State, _ *Record) { s.Open = false },
}

// begun records the initial state of a run. A further record adds to the first.
func (s *State) begun(r *Record) {
	set(&s.Version, r.Version)
	set(&s.Mode, r.Mode)
	set(&s.Kept.Command, r.Command)
	set(&s.Kept.Launch, r.Launch)
	if r.Process != nil {
		s.putProcess(Running{Process: *r.Process, Launch: s.Kept.Launch, Ready: true})
	}
}

func set(to *string, text string) {
	*to = cmp.Or(text, *to)
}

func (s *State) intend(r *Record) {
	s.Stage, s.Revert, s.Iteration = StageStopping, r.Revert, r.Iteration
	s.Touched = true
	s.Next = Config{Launch: r.Launch, Command: r.Command, Changes: slices.Clone(r.Changes)}
	if r.Revert {
		s.Next = s.Kept
		return
	}
	s.Unkept = engine.MergeChanges(s.Unkept, r.Changes)
}

// stopped ends the process that a record names, or all if it names none.
func (s *State) stopped(r *Record) {
	s.dropProcess(r.Process)
	if s.Stage != StageFailed {
		s.Stage = StageDown
	}
}

func (s *State) dropProcess(p *Process) {
	if p == nil {
		s.Processes = nil
		return
	}
	s.Processes = slices.DeleteFunc(slices.Clone(s.Processes), func(have Running) bool { return have.Process == *p })
}

func (s *State) started(r *Record) {
	if r.Process != nil {
		s.putProcess(Running{Process: *r.Process, Launch: cmp.Or(r.Launch, s.Next.Launch, s.Kept.Launch), Ours: true})
	}
	s.Touched, s.NothingToRun = true, false
	// The first start of a run has no intent: the run itself is one.
	s.Stage = StageStarting
}

// putProcess adds or updates a process.
func (s *State) putProcess(p Running) {
	list := slices.Clone(s.Processes)
	i := slices.IndexFunc(list, func(have Running) bool { return have.Process == p.Process })
	if i < 0 {
		list = append(list, p)
		s.Processes = list
		return
	}
	p.Ready, p.Ours = p.Ready || list[i].Ready, p.Ours || list[i].Ours
	list[i] = p
	s.Processes = list
}

func (s *State) ready(r *Record) {
	launch := r.Launch
	if r.Process != nil && launch != "" {
		s.putProcess(Running{Process: *r.Process, Launch: launch, Ready: true})
	} else if n := len(s.Processes); n > 0 {
		list := slices.Clone(s.Processes)
		list[n-1].Ready = true
		s.Processes = list
		launch = cmp.Or(launch, list[n-1].Launch)
	}
	launch = cmp.Or(launch, s.Next.Launch)
	s.Stage = StageTrial
	if s.Next.Launch == "" && !s.changing() || launch != "" && launch == s.Kept.Launch {
		s.settleOnKept()
	}
}

// changing reports whether the change in progress alters settings and is not a revert.
func (s *State) changing() bool { return len(s.Next.Changes) > 0 && !s.Revert }

// settleOnKept records that Kept runs.
func (s *State) settleOnKept() {
	s.Stage, s.Next, s.Revert, s.Unkept = StageStable, Config{}, false, nil
}

func (s *State) failed(*Record) {
	if s.Stage != StageStable { // otherwise the kept launch was restored before the record was written
		s.Stage = StageFailed
	}
}

func (s *State) keep(r *Record) {
	next := s.Next
	if s.Stage == StageStable {
		next = s.Kept
	}
	set(&next.Launch, r.Launch)
	set(&next.Command, r.Command)
	if r.Changes != nil {
		next.Changes = slices.Clone(r.Changes)
	}
	s.Kept = next
	s.settleOnKept()
}

// keptRunsAgain records that the kept launch runs again, as the process that a record names. If the run
// started its server and the record names none, that server has ended.
func (s *State) keptRunsAgain(r *Record) {
	if r.Process != nil {
		s.putProcess(Running{Process: *r.Process, Launch: s.Kept.Launch, Ready: true})
		s.Processes = slices.DeleteFunc(slices.Clone(s.Processes), func(have Running) bool { return have.Process != *r.Process })
	}
	s.NothingToRun = s.Mode == "exec" && len(s.Processes) == 0
	s.settleOnKept()
}
