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

// Built reports whether this build can attach to processes with eBPF.
const Built = true

// checkEvery is how often the session checks the target: its end, losses, and whether operators
// come.
const checkEvery = 100 * time.Millisecond

// graphsWithoutOperators is the number of graphs without an operator from which the hook counts
// as never called.
const graphsWithoutOperators = 5

// Session is attached to a target. It is not safe for concurrent use.
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
	opened   files
	kernel   *kernelLayer
	detail   optrace.Detail
	decoder  *Decoder

	process  *processHandle
	target   optrace.Target
	gaps     gaps
	checked  time.Duration
	drained  time.Duration
	pace     pace
	whole    bool
	handed   bool  // the last Next returned the remaining events
	lost     int64 // as counted by the programs
	hookSeen bool
	nextLook time.Duration
	files    string // mapped files with code at the last check
	end      error  // what Next returns after the last event
	closed   bool
}

// Open loads the programs and attaches them to a runtime at the cheapest detail: calls. It
// fails without the privileges, wrapping [ErrPrivileges], or if the kernel lacks something
// essential.
func Open(r *layouts.Runtime, o Options) (*Session, error) {
	if err := permitted(); err != nil {
		return nil, err
	}
	s := &Session{runtime: r, options: o, means: meansOf(r.PID, o.Single), whole: true}
	s.decoder = newDecoder(r.Layout, r.Names, nil) // first, because Close needs it if open fails
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Session) open() error {
	r := s.runtime
	if len(r.Places) == 0 {
		return fmt.Errorf("%s cannot be probed: its files have no symbols of GGML or llama.cpp functions", s.name())
	}
	var err error
	if s.maps, err = newMaps(s.options.ringSize()); err != nil {
		return s.explain(err)
	}
	if s.ring, err = mapRing(s.maps.ring.FD(), s.maps.size); err != nil {
		return err
	}
	switch {
	case r.PID == 0: // every process that maps the files
		s.unknown = followAll
	case inFirstNamespace():
		atomic.StoreUint32(&s.maps.shared.target, uint32(r.PID))
	}
	if r.PID != 0 {
		if s.process, err = openProcess(r.PID); err != nil {
			return err
		}
	}
	s.pace.size = s.maps.size
	s.kernel = newKernelLayer(s.maps, &s.gaps, s.unknown == followAll)
	if err := s.loadRuntime(); err != nil {
		return s.explain(err)
	}
	s.gaps.add(r.Gaps...)
	return s.SetDetail(optrace.DetailToken)
}

// loadRuntime loads programs for the runtime's places.
func (s *Session) loadRuntime() error {
	var refs []watched
	s.groups, refs = groupPlaces(s.runtime.Places)
	s.decoder.setRuntime(s.runtime.Layout, s.runtime.Names, refs)
	memory := targetMemory{s.runtime.PID, &s.gaps}
	s.decoder.memory, s.decoder.backend = memory.read, memory.backendName
	s.decoder.forget = func(pid int32, graph uint64) { _ = s.maps.graphs.Delete([2]uint64{graph, uint64(pid)}) }
	s.decoder.have = s.kernel.counters()
	s.offsets = offsetsOf(s.runtime.Layout, s.runtime.Names.Ops, s.decoder.raw)
	var err error
	if s.opened, err = openFiles(s.groups); err != nil {
		return err
	}
	s.programs, err = loadProbes(s.groups, s.maps, &s.offsets, s.kernel.task, s.means.multi)
	if err != nil {
		return err
	}
	s.target = describe(s.runtime)
	s.files = mappedFiles(s.runtime.PID)
	return nil
}

// unloadRuntime detaches all probes and unloads their programs.
func (s *Session) unloadRuntime() error {
	var links []link.Link
	for _, g := range s.groups {
		links = append(links, g.links...)
	}
	all := []error{closeLinks(links), s.programs.close(), s.opened.close()}
	s.groups, s.programs, s.opened = nil, nil, nil
	return errors.Join(all...)
}

// SetDetail changes what is recorded. Probes that are not needed are detached, so that they
// cost nothing; it takes 1 to 6 ms per file. Details that others need are added; what the
// kernel or the runtime cannot provide becomes a gap ([Session.Gaps]).
func (s *Session) SetDetail(d optrace.Detail) error {
	d = implied(d)
	if s.closed {
		return errors.New("the session is closed")
	}
	// Remove detail first: the remaining programs must not write what is not wanted.
	s.maps.setMode(d&s.detail, s.unknown)
	unused := s.kernel.set(d)
	for _, g := range s.groups {
		if d&g.detail == 0 {
			unused = append(unused, g.links...)
			g.links = nil
		}
	}
	if err := closeLinks(unused); err != nil {
		return fmt.Errorf("detach probes from %s: %w", s.name(), err)
	}
	s.maps.setMode(d, s.unknown)
	// Attach the begin of graphs last, so that no graph is seen without its operators.
	for _, last := range []bool{false, true} {
		for _, g := range s.groups {
			if d&g.detail == 0 || (g.program == "graph") != last {
				continue
			}
			if err := g.attach(s.opened, s.programs[g.program], s.means); err != nil {
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

// Next waits for events and returns them in time order; they are valid until the next call.
// When ctx ends it returns the remaining events, then the error of ctx. After the target's end
// it returns io.EOF.
func (s *Session) Next(ctx context.Context) ([]optrace.Event, error) {
	for {
		if s.closed {
			return nil, errors.New("the session is closed")
		}
		if s.end != nil {
			return s.remaining(s.end)
		}
		if wait := s.pace.pause() - (monotonic() - s.drained); wait > 0 && s.whole {
			timer := time.NewTimer(wait)
			select {
			case <-ctx.Done():
				timer.Stop()
				return s.remaining(ctx.Err())
			case <-timer.C:
			}
		} else if ctx.Err() != nil {
			return s.remaining(ctx.Err())
		}
		s.handed = false
		until := s.drain()
		if err := s.check(); err != nil {
			return nil, err
		}
		if events := s.decoder.out.takeUntil(until); len(events) > 0 {
			return events, nil
		}
	}
}

// remaining returns the remaining events once, and then err: a running target always has more.
func (s *Session) remaining(err error) ([]optrace.Event, error) {
	if s.handed {
		s.handed = false
		return nil, err
	}
	for range s.ring.size()/maxDrain + 1 {
		if s.drain(); s.whole {
			break
		}
	}
	if events := s.decoder.out.takeUntil(math.MaxInt64); len(events) > 0 {
		s.handed = true
		return events, nil
	}
	return nil, err
}

// drain reads the ring, and returns up to which time the events are complete.
func (s *Session) drain() time.Duration {
	now := monotonic()
	s.pace.update(s.ring.waiting(), now-s.drained)
	s.drained = now
	before := s.decoder.newestRecorded
	whole, err := s.ring.drain(s.decoder.Record)
	if err != nil { // count one, as the number is unknown, so that graphs of that time are partial
		atomic.AddUint64(&s.maps.shared.lost, 1)
		s.gaps.add(optrace.Gap{What: "some events", Why: err.Error()})
	}
	s.whole = whole || s.decoder.newestRecorded == before
	if whole {
		return s.drained - holdBack
	}
	return s.decoder.newestRecorded - holdBack
}

// Tables returns what events refer to. The tables grow with each call of Next.
func (s *Session) Tables() *optrace.Tables { return &s.decoder.tables.Tables }

// Target returns the traced process, as far as it is known.
func (s *Session) Target() optrace.Target {
	t := s.target
	t.Verified = s.decoder.verified()
	t.Withheld = s.decoder.withheld
	return t
}

// Dropped returns how many records were lost because the ring buffer was full.
func (s *Session) Dropped() int64 {
	if !s.closed {
		s.lost = int64(atomic.LoadUint64(&s.maps.shared.lost))
	}
	return s.lost
}

// Gaps returns what cannot be known about this target on this machine.
func (s *Session) Gaps() []optrace.Gap {
	all := s.gaps.list()
	d := s.decoder
	if d.withheld != "" {
		all = append(all, optrace.Gap{What: "names, shapes and graphs", Why: d.withheld, Next: "times are right; report the version of the file to the project"})
	}
	if d.tables.left > 0 {
		all = append(all, optrace.Gap{What: fmt.Sprintf("%d tensors, operators, graphs, choices of experts or readings of counters", d.tables.left),
			Why: "the tables are full", Next: "trace for a shorter time"})
	}
	return all
}

// Close detaches everything from the target, which is not affected.
func (s *Session) Close() error {
	if s.closed {
		return nil
	}
	if s.maps != nil && s.maps.shared != nil {
		s.lost = s.Dropped()
	}
	s.closed = true
	all := []error{s.unloadRuntime(), s.kernel.close()}
	if s.ring != nil {
		all = append(all, s.ring.close())
	}
	if s.maps != nil {
		all = append(all, s.maps.close())
	}
	all = append(all, s.process.close())
	return errors.Join(all...)
}

// explain turns a refusal by the kernel into a sentence.
func (s *Session) explain(err error) error {
	if s.process.ended() {
		return fmt.Errorf("process %d: %w", s.runtime.PID, ErrEnded)
	}
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%w: the kernel refuses to watch %s (%w); `rooftop doctor` prints what is missing", ErrPrivileges, s.name(), err)
	}
	return err
}

// name returns the name of the target in sentences.
func (s *Session) name() string {
	if s.runtime.PID != 0 {
		return fmt.Sprintf("process %d", s.runtime.PID)
	}
	if len(s.runtime.Images) > 0 {
		return s.runtime.Images[0].Path
	}
	return "the target"
}

// monotonic returns CLOCK_MONOTONIC, the clock of the programs.
func monotonic() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail for this clock
	return time.Duration(ts.Nano())
}

// check checks the target every checkEvery.
func (s *Session) check() error {
	now := monotonic()
	if now-s.checked < checkEvery {
		return nil
	}
	s.checked = now
	s.reportLosses(now)
	if s.process.ended() {
		s.decoder.out.add(optrace.Event{At: monotonic(), Kind: optrace.TargetExit, PID: int32(s.runtime.PID)})
		s.end = io.EOF
		return nil
	}
	if err := s.checkHook(); err != nil {
		return err
	}
	return s.checkLate(now)
}

// reportLosses emits events for losses that no record has reported.
func (s *Session) reportLosses(now time.Duration) {
	if lost := s.Dropped(); s.ring.waiting() == 0 {
		s.decoder.newest = max(s.decoder.newest, now)
		s.decoder.reportLost(uint32(lost), int32(s.runtime.PID))
	}
}

// checkHook switches to the next lower hook if graphs come without operators.
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
	why := fmt.Sprintf("%d graphs were computed and %s was never called: the runtime bypasses it", d.graphs, s.target.Hook)
	next, ok := lowerHook(s.runtime)
	if !ok {
		s.gaps.add(optrace.Gap{What: "operators", Why: why, Next: "the level graph still shows graphs and tokens"})
		return nil
	}
	if err := s.switchRuntime(next); err != nil {
		return err
	}
	s.gaps.add(optrace.Gap{What: "some operators", Why: why + "; now " + s.target.Hook + " is probed, which misses some operators"})
	return nil
}

// lowerHook returns a runtime with the next lower hook in place of its own, false if there is
// none.
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
