package fleetscan

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/engines"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/prometheus"
	"github.com/rooftop-dev/rooftop/engine/fleet"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Limits of the load on a Prometheus server, and of the memory that its answers take.
const (
	atOnce = 4 // queries
	batch  = 4 // servers of one query
)

// Fleet diagnoses the servers that were scraped in a range, what to look at first on top. given are the facts
// that the user gives about all of them. progress gets the number of servers done and of all; it may be nil.
// A server that could not be read is listed with the reason. The error, which has the exit code, is about the
// Prometheus server: no server could be read. The servers that it knows of are listed beside it.
func (o *Scraped) Fleet(ctx context.Context, given *attach.Options, r prometheus.Range, progress func(done, all int)) ([]fleet.Server, error) {
	source, found, err := o.Open(ctx, r, engines.DiagnosisSeries())
	if err != nil {
		return nil, err
	}
	nameGPUs(ctx, source, found, r, given)
	f := reading{o: o, given: given, source: source, r: r, found: found, list: make([]fleet.Server, len(found)), finished: cli.CountDone(progress, len(found))}
	var group errgroup.Group
	group.SetLimit(atOnce)
	for part := range slices.Chunk(found, batch) {
		first := f.begun
		f.begun += len(part)
		group.Go(func() error { return f.read(ctx, first, part) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if failed := f.failed.Load(); f.unread.Load() == int64(len(found)) && failed != nil {
		return f.list, coded(ctx, *failed)
	}
	fleet.Rank(f.list)
	return f.list, nil
}

// reading is one reading of many servers.
type reading struct {
	o        *Scraped
	given    *attach.Options
	source   *prometheus.Source
	r        prometheus.Range
	found    []prometheus.Target
	list     []fleet.Server
	finished func() // tells that one more server is done

	begun       int // servers handed out
	unread      atomic.Int64
	unreachable atomic.Int64 // queries in a row that Prometheus did not answer
	failed      atomic.Pointer[error]
}

// read diagnoses some servers, the first of which has an index. If Prometheus refuses the query of several it
// asks for fewer; if it does not answer, which queries at the same time find out too, it is not asked again.
func (f *reading) read(ctx context.Context, first int, part []prometheus.Target) error {
	err := errGivenUp
	var pages [][]prometheus.Page
	if f.unreachable.Load() < atOnce {
		pages, err = f.source.Pages(ctx, part, f.r)
	}
	switch {
	case ctx.Err() != nil:
		return cli.Interrupted(ctx)
	case errors.Is(err, prometheus.ErrSlow):
		f.unreachable.Add(atOnce) // every further query would take as long
	case errors.Is(err, collect.ErrUnreachable):
		f.unreachable.Add(1)
	case err == nil:
		f.unreachable.Store(0)
	case len(part) > 1 && !errors.Is(err, errGivenUp):
		half := len(part) / 2
		if err := f.read(ctx, first, part[:half]); err != nil {
			return err
		}
		return f.read(ctx, first+half, part[half:])
	}
	for i, t := range part {
		s := &f.list[first+i]
		switch {
		case err != nil:
			*s = fleet.Unread(t.Name, err.Error())
			f.unread.Add(1)
			if !errors.Is(err, errGivenUp) {
				f.failed.CompareAndSwap(nil, &err)
			}
		case len(pages[i]) == 0:
			*s = fleet.Unread(t.Name, "Prometheus has no scrape of it in this time")
		case !slices.ContainsFunc(pages[i], func(p prometheus.Page) bool { return !p.Down }):
			*s = fleet.Down(t.Name, "no scrape of it succeeded in this time")
		default:
			d, err := f.o.examine(t, pages[i], f.r, f.given, nil)
			if err != nil {
				return err
			}
			s.Diagnosis = d
		}
		s.Name, s.Deployment = t.Name, t.Deployment()
		s.Command = launch.Line("rooftop", "diagnose", "--prometheus", f.o.Prometheus, "--match", t.Match())
		f.finished()
	}
	return nil
}

// errGivenUp is why a server was not read after Prometheus had not answered about others.
var errGivenUp = errors.New("not asked: Prometheus did not answer about other servers")
