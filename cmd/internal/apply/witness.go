package apply

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/vllm"
	"github.com/rooftop-dev/rooftop/engine"
)

// Pace at which a witness looks at a server: as often as the session does, and no more
// than a twentieth of the time.
const (
	witnessPoll  = 250 * time.Millisecond
	witnessShare = 20
	// witnessTries is how often nobody has to answer before a server counts as down.
	witnessTries = 3
)

// witness sees whether a server is restarted: one that answers need not be another
// than before, where the program that restarts it does not wait. Pages that tell when
// their server was started are believed; else counters that fell, or a moment in which
// nobody answered.
type witness struct {
	ready    Readiness
	door     *door
	scraper  *vllm.Scraper
	first    *engine.Page // before anything was done, nil where it could not be read
	last     *engine.Page
	silent   bool // nobody answered for a moment
	moved    bool // it is another run than at first
	blind    bool // it answered at first, and its page could not be read: nothing can be seen
	interval time.Duration
	// within is how long nobody may answer until what is done is called off, 0 for ever,
	// and down since when nobody does.
	within time.Duration
	off    context.CancelCauseFunc
	down   time.Time
	// before looked at the server before something was done that is to be undone: one
	// that is still the run of then need not be restarted. nil none.
	before *witness
}

// witness looks at a server before it is to be restarted. Close lets go of it.
func (r Readiness) witness(ctx context.Context) (*witness, error) {
	d, err := r.door(nil)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	w := &witness{ready: r, door: d, interval: witnessPoll}
	w.scraper = vllm.NewScraper(d.health, "", func() time.Duration { return time.Since(begun) })
	for range witnessTries {
		w.silent = false
		if w.look(ctx); w.first != nil || !w.silent {
			break
		}
		_ = pause(ctx, readyPoll) // once the context has ended neither this nor a look takes time
	}
	w.blind = w.first == nil && !w.silent
	return w, nil
}

func (w *witness) close() { w.door.close() }

// bounded gives a change the time that nobody may answer for: what keeps the former
// server up until the new one is ready may take longer. Where nothing can be seen it is
// that of the whole change.
func (w *witness) bounded(ctx context.Context, a engine.Apply) (context.Context, context.CancelFunc) {
	if w.blind || a.Within <= 0 {
		return bounded(ctx, a)
	}
	ctx, w.off = context.WithCancelCause(ctx)
	w.within = a.Within
	return ctx, func() { w.off(context.Canceled) }
}

// overdue calls off what is done once nobody has answered for too long.
func (w *witness) overdue(answers bool) {
	switch {
	case answers:
		w.down = time.Time{}
	case w.down.IsZero():
		w.down = time.Now()
	}
	if w.within > 0 && !answers && time.Since(w.down) > w.within {
		w.off(&lateError{w.within})
	}
}

// look takes in what the server shows now.
func (w *witness) look(ctx context.Context) {
	page, _, err := w.scraper.Scrape(ctx)
	var status *collect.StatusError
	gone := errors.Is(err, collect.ErrUnreachable) || errors.As(err, &status) && away(status.Code)
	if ctx.Err() == nil {
		w.overdue(!gone)
	}
	switch {
	case ctx.Err() != nil:
	case err == nil:
		w.interval = max(witnessPoll, witnessShare*page.Took)
		if w.first == nil && !w.silent {
			w.first = page
		}
		w.take(page)
	case gone:
		w.silent = true
	case w.silent:
		w.moved = true // it answers again, and nothing else is known of it
	}
}

// away are the statuses of whoever answers in the place of a server that is not there.
func away(code int) bool {
	const badGateway, unavailable, gatewayTimeout = 502, 503, 504
	return code == badGateway || code == unavailable || code == gatewayTimeout
}

// take takes in a page.
func (w *witness) take(page *engine.Page) {
	if w.first == nil {
		w.moved = true // it was down
		return
	}
	dated := w.first.StartTime.OK && page.StartTime.OK || w.first.Created.OK && page.Created.OK
	switch {
	case engine.Restarted(w.first, page), w.last != nil && engine.Restarted(w.last, page):
		w.moved = true
	case dated && engine.Restarted(page, w.first):
		w.moved = true // an older one that was kept running, as where two take turns
	case dated:
		w.silent = false // it was the network
	case w.silent:
		w.moved = true
	}
	w.last = page
}

// watched does something while a witness, nil none, looks on: what waits until the new
// server is up may leave nothing to be seen after it.
func watched(ctx context.Context, w *witness, do func() error) error {
	if w == nil {
		return do()
	}
	looking, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		for pause(looking, w.interval) == nil {
			w.look(ctx) // to its end: it may be the only one that sees something
		}
	})
	err := do()
	stop()
	watching.Wait()
	return err
}

// restarted waits until a server was restarted, as a witness sees it, and is ready;
// without one, until it is ready.
func (r Readiness) restarted(ctx context.Context, w *witness, who string) error {
	if w == nil {
		return r.ready(ctx, nil, nil)
	}
	return w.await(ctx, who)
}

// await waits until the server was restarted and is ready; where nothing can be seen of
// a restart, until it is ready. Who is who was to restart it.
func (w *witness) await(ctx context.Context, who string) error {
	if w.blind {
		return w.ready.ready(ctx, nil, nil)
	}
	if b := w.before; b != nil {
		if b.look(ctx); !b.moved && !b.silent {
			return w.ready.ready(ctx, nil, nil)
		}
	}
	for deadline := time.Now().Add(w.ready.within()); ; {
		w.look(ctx)
		if w.moved || w.silent {
			if err := w.up(ctx); err != nil {
				return err
			}
			if !w.moved {
				w.look(ctx)
			}
		}
		switch {
		case w.moved:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case time.Now().After(deadline):
			return fmt.Errorf("the server was not restarted: it answers as before, %v after %s ended", w.ready.within(), who)
		}
		if err := pause(ctx, w.interval); err != nil {
			return err
		}
	}
}

// up waits until the server is ready, for as long as it may be down.
func (w *witness) up(ctx context.Context) error {
	if w.within > 0 && !w.down.IsZero() {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, w.within-time.Since(w.down), &lateError{w.within})
		defer stop()
	}
	return w.ready.ready(ctx, nil, nil)
}
