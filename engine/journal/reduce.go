package journal

import (
	"slices"
	"time"
)

// State is where the last run of a journal stands: what is to run when everything
// is put right, and what may run instead.
type State struct {
	Run  string // "" where the journal holds none
	Open bool   // it has begun and not ended

	Begun   time.Time
	Last    time.Time // of its last record
	Seq     int       // of the last record of the journal
	Version string
	Mode    string
	Server  string

	// Kept is what is to run.
	Kept Config
	// Next is what the change under way was to start; the zero Config is none.
	Next  Config
	Stage Stage
	// Intent is when the change under way was written down: a process that it
	// started and that no record names is younger.
	Intent time.Time
	// Revert says that the change under way leads back to Kept.
	Revert    bool
	Iteration int
	// Unkept are the changes to Kept that may be in place, each flag once, with the
	// value that it has in Kept.
	Unkept []Change

	// Processes were found or started in this run, oldest first, and no record says
	// that they ended.
	Processes []Running
	// Launches are all launch files that records of this run name.
	Launches []string
	// Touched says that something was changed, or was about to be.
	Touched bool
	// Nothing says that no server ran before the run, and that the one that it started
	// has ended in order: nothing is to run.
	Nothing bool
	// Why is what the last Failed record said.
	Why string
}

// Config is a configuration of the server.
type Config struct {
	Launch  string // file of the exact launch, "" where none is known
	Command string // redacted
	Changes []Change
}

// Running is a process with what it was started from.
type Running struct {
	Process
	Launch string // "" unknown
	Ready  bool   // it answered
	Ours   bool   // rooftop started it, as the leader of a session of its own
}

// Stage is how far a change is.
type Stage uint8

// Stages of a run.
const (
	// Whole: nothing is under way, Kept runs.
	Whole Stage = iota
	// Going: a change was written down. The server may have been told to stop.
	Going
	// Down: the server has stopped. Files may be changed, and another may have been
	// started that no record names.
	Down
	// Up: Next was started and did not answer yet.
	Up
	// Trying: Next answers.
	Trying
	// Undone: the change could not be made, and no record says that Kept runs again.
	Undone
)

var stageNames = [...]string{Whole: "whole", Going: "going", Down: "down", Up: "up", Trying: "trying", Undone: "undone"}

// String names the stage.
func (s Stage) String() string { return stageNames[min(s, Undone)] }

// Settled says that nothing is left to put right: no run is open, or Kept runs and
// no change is under way.
func (s *State) Settled() bool { return !s.Open || s.Stage == Whole }

// Reduce returns the state that records lead to, in their order.
func Reduce(records []Record) State {
	var s State
	for i := range records {
		s.add(&records[i])
	}
	return s
}

// Add takes in one more record.
func (s *State) Add(r Record) { s.add(&r) }

func (s *State) add(r *Record) {
	s.Seq = r.Seq
	if r.Run != s.Run || !s.Open && r.Kind == Begin {
		// A run begins once the one before is over: nothing of that one counts here.
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

// begin opens the run that a record is of.
func (s *State) begin(r *Record) {
	*s = State{Run: r.Run, Seq: r.Seq, Open: true, Begun: r.Time}
}

// acts are what a record of each kind changes. Kinds that are not listed, also
// those of a later rooftop, change nothing.
var acts = map[Kind]func(*State, *Record){
	Begin:   (*State).begun,
	Intent:  (*State).intend,
	Stopped: (*State).stopped,
	Started: (*State).started,
	Ready:   (*State).ready,
	Failed:  (*State).failed,
	Kept:    (*State).keep,
	Back:    (*State).back,
	Recover: (*State).back,
	End:     func(s *State, _ *Record) { s.Open = false },
}

// begun takes in what a run starts from. A further record adds to the first.
func (s *State) begun(r *Record) {
	set(&s.Version, r.Version)
	set(&s.Mode, r.Mode)
	set(&s.Server, r.Server)
	set(&s.Kept.Command, r.Command)
	set(&s.Kept.Launch, r.Launch)
	if r.Process != nil {
		s.put(Running{Process: *r.Process, Launch: s.Kept.Launch, Ready: true})
	}
}

func set(to *string, text string) {
	if text != "" {
		*to = text
	}
}

func (s *State) intend(r *Record) {
	s.Stage, s.Intent, s.Revert, s.Iteration, s.Why = Going, r.Time, r.Revert, r.Iteration, ""
	s.Touched = true
	s.Next = Config{Launch: r.Launch, Command: r.Command, Changes: slices.Clone(r.Changes)}
	if r.Revert {
		s.Next = s.Kept
		return
	}
	s.Unkept = slices.Clone(s.Unkept)
	for _, c := range r.Changes {
		i := slices.IndexFunc(s.Unkept, func(have Change) bool { return have.Flag == c.Flag })
		if i < 0 {
			s.Unkept = append(s.Unkept, c)
			continue
		}
		s.Unkept[i].To = c.To
	}
}

// stopped ends the process that a record names, or all where it names none.
func (s *State) stopped(r *Record) {
	s.drop(r.Process)
	if s.Stage != Undone {
		s.Stage = Down
	}
}

func (s *State) drop(p *Process) {
	if p == nil {
		s.Processes = nil
		return
	}
	s.Processes = slices.DeleteFunc(slices.Clone(s.Processes), func(have Running) bool { return have.Process == *p })
}

func (s *State) started(r *Record) {
	launch := r.Launch
	if launch == "" {
		launch = s.Next.Launch
	}
	if launch == "" {
		launch = s.Kept.Launch
	}
	if r.Process != nil {
		s.put(Running{Process: *r.Process, Launch: launch, Ours: true})
	}
	s.Touched, s.Nothing = true, false
	// The first start of a run has no intent before it: the run itself is one.
	s.Stage = Up
}

// put adds a process, or what is now known of it.
func (s *State) put(p Running) {
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
		s.put(Running{Process: *r.Process, Launch: launch, Ready: true})
	} else if n := len(s.Processes); n > 0 {
		list := slices.Clone(s.Processes)
		list[n-1].Ready = true
		s.Processes = list
		if launch == "" {
			launch = list[n-1].Launch
		}
	}
	if launch == "" {
		launch = s.Next.Launch
	}
	s.Stage = Trying
	if s.Next.Launch == "" && !s.changing() || launch != "" && launch == s.Kept.Launch {
		s.settle()
	}
}

// changing says that the change under way is to settings and does not lead back.
func (s *State) changing() bool { return len(s.Next.Changes) > 0 && !s.Revert }

// settle says that Kept runs.
func (s *State) settle() {
	s.Stage, s.Next, s.Revert, s.Unkept = Whole, Config{}, false, nil
}

func (s *State) failed(r *Record) {
	s.Why = r.Text
	if s.Stage != Whole { // else the kept launch was put back before it was written
		s.Stage = Undone
	}
}

func (s *State) keep(r *Record) {
	next := s.Next
	if s.Stage == Whole {
		next = s.Kept
	}
	set(&next.Launch, r.Launch)
	set(&next.Command, r.Command)
	if r.Changes != nil {
		next.Changes = slices.Clone(r.Changes)
	}
	s.Kept = next
	s.settle()
}

// back says that the kept launch runs again, as the process that a record names. A
// run that started its server and names none has ended that server.
func (s *State) back(r *Record) {
	if r.Process != nil {
		s.put(Running{Process: *r.Process, Launch: s.Kept.Launch, Ready: true})
		s.Processes = slices.DeleteFunc(slices.Clone(s.Processes), func(have Running) bool { return have.Process != *r.Process })
	}
	s.Nothing = s.Mode == "exec" && len(s.Processes) == 0
	s.settle()
}
