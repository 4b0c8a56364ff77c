//go:build amd64 || arm64

package ggml

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	layouts "github.com/rooftop-dev/rooftop/collect/ggml/binary"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// checkEvery is how often the session looks after the target: its end, losses, and
// whether operators come.
const checkEvery = 100 * time.Millisecond

// graphsWithoutOperators is after how many graphs without a single operator the hook
// counts as one that is never called.
const graphsWithoutOperators = 5

// Session is attached to a target. Its methods belong to one goroutine.
type Session struct {
	runtime *layouts.Runtime
	options Options
	means   means
	unknown uint32

	maps     *maps
	ring     *ring
	offsets  offsets
	programs programs
	groups   []*group
	held     files
	kernel   *kernelLayer
	task     *taskOffsets
	taskErr  error
	pmu      *pmu
	pmuErr   error
	detail   optrace.Detail
	decoder  *Decoder

	process  *lifeline
	target   optrace.Target
	gaps     gaps
	checked  time.Duration
	drained  time.Duration
	pace     pace
	whole    bool
	handed   bool  // what was left, by the last Next
	lost     int64 // as counted by the programs
	hookSeen bool
	copies   copies
	again    time.Duration // until when a runtime is looked for after an exec, 0 not
	nextLook time.Duration
	files    string        // with code that the target had mapped when it was looked at last
	patience time.Duration // how long a runtime is looked for after an exec
	end      error         // what Next returns when all is handed out
	closed   bool
}

// Open loads the programs and attaches them to a runtime at the cheapest detail:
// calls. Without the privileges, or where the kernel lacks something that nothing makes
// up for, it fails with one sentence.
func Open(r *layouts.Runtime, o Options) (*Session, error) {
	if err := permitted(); err != nil {
		return nil, err
	}
	s := &Session{runtime: r, options: o, means: meansOf(r.PID, o.Single), whole: true, patience: lookAgainFor}
	s.decoder = newDecoder(r.Layout, r.Names, nil) // first, since Close asks it, whatever fails
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Session) open() error {
	r := s.runtime
	if len(r.Places) == 0 {
		return fmt.Errorf("nothing of %s can be probed: no function of GGML or llama.cpp has a symbol in its files", s.name())
	}
	var err error
	if s.maps, err = newMaps(s.options.ringSize()); err != nil {
		return s.explain(err)
	}
	if s.ring, err = mapRing(s.maps.ring.FD(), s.maps.size); err != nil {
		return err
	}
	switch {
	case r.PID == 0 && s.options.All:
		s.unknown = followAll
	case r.PID != 0 && inFirstNamespace():
		atomic.StoreUint32(&s.maps.shared.target, uint32(r.PID))
	}
	if r.PID != 0 {
		if s.process, err = openProcess(r.PID); err != nil {
			return err
		}
	}
	s.pace.size = s.maps.size
	s.task, s.taskErr = kernelTypes()
	if s.pmu, s.pmuErr = openPMU(hardware); s.pmu != nil {
		s.maps.pmu = s.pmu.maps
	}
	if err := s.arm(); err != nil {
		return s.explain(err)
	}
	s.gaps.add(r.Gaps...)
	s.copies.watch(monotonic())
	return s.SetDetail(optrace.DetailToken)
}

// arm loads programs for the runtime's places.
func (s *Session) arm() error {
	var refs []watched
	s.groups, refs = groupPlaces(s.runtime.Places)
	s.decoder.become(s.runtime.Layout, s.runtime.Names, refs)
	s.decoder.memory = s.read
	s.decoder.backend = s.backendName
	s.decoder.forget = func(pid int32, graph uint64) { _ = s.maps.graphs.Delete([2]uint64{graph, uint64(pid)}) }
	if s.task != nil {
		s.decoder.have = kernelCounters
		if s.pmu != nil {
			s.decoder.have |= s.pmu.have
		}
	}
	s.offsets = offsetsOf(&s.runtime.Layout, &s.runtime.Names, s.decoder.raw)
	var err error
	if s.held, err = openFiles(s.groups); err != nil {
		return err
	}
	s.programs, err = loadProbes(s.groups, s.maps, &s.offsets, s.task, s.means.multi)
	if err != nil {
		return err
	}
	s.target = describe(s.runtime)
	s.files = mappedFiles(s.runtime.PID)
	return nil
}

// disarm takes all probes off and unloads their programs.
func (s *Session) disarm() error {
	var links []link.Link
	for _, g := range s.groups {
		links = append(links, g.links...)
	}
	all := []error{closeLinks(links), s.programs.close(), s.held.close()}
	s.groups, s.programs, s.held = nil, nil, nil
	return errors.Join(all...)
}

// offsetsOf are what programs must know of a layout.
func offsetsOf(l *layouts.Layout, n *layouts.Names, raw int) offsets {
	o := offsets{
		raw: raw, ne: l.NE, nb: l.NB, op: l.Op, src: l.Src, data: l.Data,
		graphNodes: l.GraphNodes, graphCount: l.GraphCount, mulMatID: -1, thread: l.Thread,
	}
	for i, name := range n.Ops {
		if name == "MUL_MAT_ID" {
			o.mulMatID = i
		}
	}
	return o
}

// SetDetail changes what is recorded. Probes that are not needed are taken off, so that
// they cost nothing; it takes 1 to 6 ms for each file. Details that others need are
// added; what the kernel or the runtime cannot give is a gap ([Session.Gaps]).
func (s *Session) SetDetail(d optrace.Detail) error {
	d = implied(d)
	if s.closed {
		return errors.New("the session is closed")
	}
	// Less first: the programs that stay must not write what nothing asks for.
	s.maps.setMode(d&s.detail, s.unknown)
	unused := s.setKernel(d)
	s.pmu.run(d&optrace.DetailCounters != 0)
	for _, g := range s.groups {
		if d&g.detail == 0 {
			unused = append(unused, g.links...)
			g.links = nil
		}
	}
	if err := closeLinks(unused); err != nil {
		return fmt.Errorf("take probes off %s: %w", s.name(), err)
	}
	s.maps.setMode(d, s.unknown)
	// A graph's begin last: what is seen of a graph is seen from its begin on.
	for _, last := range []bool{false, true} {
		for _, g := range s.groups {
			if d&g.detail == 0 || (g.program == "graph") != last {
				continue
			}
			if err := g.attach(s.held, s.programs[g.program], s.means); err != nil {
				return s.explain(err)
			}
		}
	}
	s.noteAbsent(d)
	s.detail = d
	now := monotonic()
	s.decoder.countFrom(now)
	s.decoder.out.add(optrace.Event{At: now, Kind: optrace.DetailChanged, N: int64(d), PID: int32(s.runtime.PID)})
	return nil
}

// Detail is what is recorded.
func (s *Session) Detail() optrace.Detail { return s.detail }

// Next waits for events and returns them in the order of time; they are valid until the
// next call. When ctx ends it returns what is left, then the error of ctx. After the
// target's end it is io.EOF.
func (s *Session) Next(ctx context.Context) ([]optrace.Event, error) {
	for {
		if s.closed {
			return nil, errors.New("the session is closed")
		}
		if s.end != nil {
			return s.rest(s.end)
		}
		if wait := s.pace.pause() - (monotonic() - s.drained); wait > 0 && s.whole {
			timer := time.NewTimer(wait)
			select {
			case <-ctx.Done():
				timer.Stop()
				return s.rest(ctx.Err())
			case <-timer.C:
			}
		} else if ctx.Err() != nil {
			return s.rest(ctx.Err())
		}
		s.handed = false
		until := s.drain()
		if err := s.check(); err != nil {
			return nil, err
		}
		if events := s.decoder.out.take(until); len(events) > 0 {
			return events, nil
		}
	}
}

// rest is all that is left, once, and an error after that: a target that goes on has
// always more.
func (s *Session) rest(err error) ([]optrace.Event, error) {
	if s.handed {
		s.handed = false
		return nil, err
	}
	for range s.ring.size()/maxDrain + 1 {
		if s.drain(); s.whole {
			break
		}
	}
	if events := s.decoder.out.take(math.MaxInt64); len(events) > 0 {
		s.handed = true
		return events, nil
	}
	return nil, err
}

// drain reads the ring, and says up to which moment events are complete.
func (s *Session) drain() time.Duration {
	now := monotonic()
	s.pace.saw(s.ring.waiting(), now-s.drained)
	s.drained = now
	before := s.decoder.newestRecorded
	whole, err := s.ring.drain(s.decoder.Record)
	if err != nil { // how many is not known: one, so that graphs of that time are not whole
		atomic.AddUint64(&s.maps.shared.lost, 1)
		s.gaps.add(optrace.Gap{What: "some events", Why: err.Error()})
	}
	s.whole = whole || s.decoder.newestRecorded == before
	if whole {
		return s.drained - holdBack
	}
	return s.decoder.newestRecorded - holdBack
}

// Tables are what events refer to. They grow with each call of Next.
func (s *Session) Tables() *optrace.Tables { return &s.decoder.tables.Tables }

// Target is what is watched.
func (s *Session) Target() optrace.Target {
	t := s.target
	t.Verified = s.decoder.verified()
	t.Withheld = s.decoder.withheld
	t.PID = s.pid()
	return t
}

// pid is the target's, that of the first process which was seen where none was named, and
// 0 where all are watched.
func (s *Session) pid() int {
	if s.target.PID != 0 || s.unknown != followFirst || s.closed {
		return s.target.PID
	}
	return int(atomic.LoadUint32(&s.maps.shared.target))
}

// Dropped is how many records found no room in the ring buffer.
func (s *Session) Dropped() int64 {
	if !s.closed {
		s.lost = int64(atomic.LoadUint64(&s.maps.shared.lost))
	}
	return s.lost
}

// Gaps are what cannot be known of this target on this machine.
func (s *Session) Gaps() []optrace.Gap {
	all := s.gaps.list()
	d := s.decoder
	if d.withheld != "" {
		all = append(all, optrace.Gap{What: "names, shapes and graphs", Why: d.withheld, Next: "times are right; send the file's version to the project"})
	}
	if d.tables.left > 0 {
		all = append(all, optrace.Gap{What: fmt.Sprintf("%d tensors, operators, graphs, choices of experts or readings of counters", d.tables.left),
			Why: "the tables are full", Next: "trace for a shorter time"})
	}
	return all
}

// Close takes everything off the target, which goes on as if nothing had been.
func (s *Session) Close() error {
	if s.closed {
		return nil
	}
	if s.maps != nil && s.maps.shared != nil {
		s.target.PID, s.lost = s.pid(), s.Dropped()
	}
	s.closed = true
	all := []error{s.disarm(), s.kernel.close(), s.pmu.close()}
	if s.ring != nil {
		all = append(all, s.ring.close())
	}
	if s.maps != nil {
		all = append(all, s.maps.close())
	}
	all = append(all, s.process.close())
	return errors.Join(all...)
}

// explain makes a sentence of a refusal by the kernel.
func (s *Session) explain(err error) error {
	if s.process.gone() {
		return fmt.Errorf("process %d: %w", s.runtime.PID, ErrEnded)
	}
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%w: the kernel refuses to watch %s (%w); `rooftop doctor` prints what is missing", ErrPrivileges, s.name(), err)
	}
	return err
}

// name is what the target is called in sentences.
func (s *Session) name() string {
	if s.runtime.PID != 0 {
		return fmt.Sprintf("process %d", s.runtime.PID)
	}
	if len(s.runtime.Images) > 0 {
		return s.runtime.Images[0].Path
	}
	return "the target"
}

// monotonic is CLOCK_MONOTONIC, the clock of the programs.
func monotonic() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail for this clock
	return time.Duration(ts.Nano())
}

// check looks after the target, now and then.
func (s *Session) check() error {
	now := monotonic()
	if now-s.checked < checkEvery {
		return nil
	}
	s.checked = now
	s.tellLosses(now)
	if s.decoder.execs > 0 {
		s.decoder.execs = 0
		return s.becameAnother()
	}
	if s.process.gone() {
		s.decoder.out.add(optrace.Event{At: monotonic(), Kind: optrace.TargetExit, PID: int32(s.runtime.PID)})
		s.end = io.EOF
		return nil
	}
	if err := s.checkCopies(now); err != nil {
		return err
	}
	if err := s.checkHook(); err != nil {
		return err
	}
	return s.checkLate(now)
}

// tellLosses makes events of losses that no record has told of.
func (s *Session) tellLosses(now time.Duration) {
	if lost := s.Dropped(); s.ring.waiting() == 0 {
		s.decoder.newest = max(s.decoder.newest, now)
		s.decoder.lose(uint32(lost), int32(s.runtime.PID))
	}
}

// checkHook goes down the ladder of hooks where operators do not come although graphs
// do.
func (s *Session) checkHook() error {
	d := s.decoder
	if s.detail&optrace.DetailOperator == 0 || s.hookSeen || s.runtime.Hook == layouts.PointGraph {
		return nil
	}
	if d.hits > 0 {
		s.hookSeen = true
		return nil
	}
	if d.graphs < graphsWithoutOperators {
		return nil
	}
	s.hookSeen = true
	why := fmt.Sprintf("%d graphs were computed and %s was never called: the runtime goes around it", d.graphs, s.target.Hook)
	next, ok := lowerHook(s.runtime)
	if !ok {
		s.gaps.add(optrace.Gap{What: "operators", Why: why, Next: "the level graph still tells graphs and tokens"})
		return nil
	}
	if err := s.rearm(next); err != nil {
		return err
	}
	s.gaps.add(optrace.Gap{What: "some operators", Why: why + "; now " + s.target.Hook + " is watched, which does not see all"})
	return nil
}

// checkCopies goes on to another copy of GGML in the target where this one computes nothing.
func (s *Session) checkCopies(now time.Duration) error {
	others := s.runtime.Others
	if s.runtime.PID == 0 || len(others) == 0 || !s.copies.leave(now, s.decoder.graphs+s.decoder.calls > 0) {
		return nil
	}
	s.gaps.drop(s.runtime.Gaps...)
	err := s.rearm(others[0])
	s.copies.watch(monotonic())
	return err
}

// lowerHook is a runtime with the next hook of the ladder in place of its own.
func lowerHook(r *layouts.Runtime) (*layouts.Runtime, bool) {
	if len(r.Lower) == 0 {
		return nil, false
	}
	next := *r
	next.Hook = r.Lower[0].Point
	next.Places, next.Lower = nil, nil
	for _, p := range r.Places {
		if p.Point != r.Hook && p.Point != layouts.PointOpFused {
			next.Places = append(next.Places, p)
		}
	}
	for _, p := range r.Lower {
		if p.Point == next.Hook {
			next.Places = append(next.Places, p)
		} else {
			next.Lower = append(next.Lower, p)
		}
	}
	return &next, true
}
