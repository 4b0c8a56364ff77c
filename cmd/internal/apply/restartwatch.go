package apply

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply/manager"
	"github.com/rooftop-dev/rooftop/cmd/internal/engines"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// Pace at which a restartWatch polls a server: as often as the session does, and for at
// most a twentieth of the time.
const (
	watchPoll  = 250 * time.Millisecond
	watchShare = 20
	// watchTries is the number of failed requests after which a server counts as down.
	watchTries = 3
)

// restartWatch detects whether a server was restarted. A server that answers may still be
// the old one, because the program that restarts it may not wait. The watch goes by the
// start times on the pages if they have any, else by counters that fell or a time
// without answers.
type restartWatch struct {
	by       manager.Manager // that restarts the server
	ready    Readiness
	server   *endpoints
	scraper  *enginepage.Scraper
	first    *engine.Page // before the change, nil if it could not be read
	last     *engine.Page
	silent   bool // the server did not answer for some time
	moved    bool // the server was restarted since first
	blind    bool // the server answered, but its page cannot be read, so a restart is not visible
	interval time.Duration
	// within is how long the server may not answer before cancel ends the change, 0 for no
	// limit; down is since when it does not answer.
	within time.Duration
	cancel context.CancelCauseFunc
	down   time.Time
	// before is the watch of the failed change that is being reverted, nil if there is none.
	// A server that it has not seen restart need not be restarted.
	before *restartWatch
}

// watchRestart starts to watch a server before its restart. The caller closes the watch.
func (r Readiness) watchRestart(ctx context.Context) (*restartWatch, error) {
	d, err := r.connect(nil)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	w := &restartWatch{ready: r, server: d, interval: watchPoll}
	w.scraper = enginepage.NewScraper(d.health, engines.NewReader(""), func() time.Duration { return time.Since(begun) })
	for range watchTries {
		w.silent = false
		if w.observe(ctx); w.first != nil || !w.silent {
			break
		}
		_ = pause(ctx, readyPoll) // returns at once after the context ended, as does observe
	}
	w.blind = w.first == nil && !w.silent
	return w, nil
}

func (w *restartWatch) close() { w.server.close() }

// bounded limits a change by the time without answers, because a program that keeps the
// previous server up until the new one is ready may take longer in all. A blind watch
// limits the whole change.
func (w *restartWatch) bounded(ctx context.Context, a loop.Apply) (context.Context, context.CancelFunc) {
	if w.blind || a.Within <= 0 {
		return bounded(ctx, a)
	}
	ctx, w.cancel = context.WithCancelCause(ctx)
	w.within = a.Within
	return ctx, func() { w.cancel(context.Canceled) }
}

// recordAnswer updates how long the server has not answered, and cancels the change if that
// is too long.
func (w *restartWatch) recordAnswer(answers bool) {
	switch {
	case answers:
		w.down = time.Time{}
	case w.down.IsZero():
		w.down = time.Now()
	}
	if w.within > 0 && !answers && time.Since(w.down) > w.within {
		w.cancel(&lateError{w.within})
	}
}

// observe polls the server once and updates the watch.
func (w *restartWatch) observe(ctx context.Context) {
	page, _, err := w.scraper.Scrape(ctx)
	var status *collect.StatusError
	gone := errors.Is(err, collect.ErrUnreachable) || errors.As(err, &status) && byProxy(status.Code)
	if ctx.Err() == nil {
		w.recordAnswer(!gone)
	}
	switch {
	case ctx.Err() != nil:
	case err == nil:
		w.interval = max(watchPoll, watchShare*page.Took)
		if w.first == nil && !w.silent {
			w.first = page
		}
		w.compare(page)
	case gone:
		w.silent = true
	case w.silent:
		w.moved = true // it answers again without a readable page
	}
}

// byProxy reports whether an HTTP status is that of a proxy whose server is down.
func byProxy(code int) bool {
	const badGateway, unavailable, gatewayTimeout = 502, 503, 504
	return code == badGateway || code == unavailable || code == gatewayTimeout
}

// compare compares a page with the first and the last one.
func (w *restartWatch) compare(page *engine.Page) {
	if w.first == nil {
		w.moved = true // it was down
		return
	}
	dated := w.first.StartTime.OK && page.StartTime.OK || w.first.Created.OK && page.Created.OK
	switch {
	case engine.Restarted(w.first, page), w.last != nil && engine.Restarted(w.last, page):
		w.moved = true
	case dated && engine.Restarted(page, w.first):
		w.moved = true // an older server, as where two servers alternate
	case dated:
		w.silent = false // only the network failed
	case w.silent:
		w.moved = true
	}
	w.last = page
}

// watched calls do and meanwhile observes the server with w, which may be nil. A program
// that waits until the new server is up may leave no sign of the restart afterwards.
func watched(ctx context.Context, w *restartWatch, do func() error) error {
	if w == nil {
		return do()
	}
	looking, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		for pause(looking, w.interval) == nil {
			w.observe(ctx) // not canceled by stop: it may be the only poll that sees the restart
		}
	})
	err := do()
	stop()
	watching.Wait()
	return err
}

// restarted waits until the watch has seen a restart and the server is ready. Without a
// watch it waits only until the server is ready. by restarts it.
func (r Readiness) restarted(ctx context.Context, w *restartWatch, by manager.Manager) error {
	if w == nil {
		return r.ready(ctx, nil, func() error { return by.Ended(ctx) })
	}
	w.by = by
	return w.await(ctx)
}

// await waits until the server was restarted and is ready. A blind watch waits only until
// the server is ready.
func (w *restartWatch) await(ctx context.Context) error {
	ended := func() error { return w.by.Ended(ctx) }
	if w.blind {
		return w.ready.ready(ctx, nil, ended)
	}
	if b := w.before; b != nil {
		if b.observe(ctx); !b.moved && !b.silent {
			return w.ready.ready(ctx, nil, ended)
		}
	}
	for deadline := time.Now().Add(w.ready.within()); ; {
		w.observe(ctx)
		if w.moved || w.silent {
			if err := w.up(ctx); err != nil {
				return err
			}
			if !w.moved {
				w.observe(ctx)
			}
		}
		why := ended()
		switch {
		case w.moved:
			return nil
		case why != nil:
			return why
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case time.Now().After(deadline):
			return fmt.Errorf("the server was not restarted: it answers as before, %v after %s ended", w.ready.within(), w.by.Name())
		}
		if err := pause(ctx, w.interval); err != nil {
			return err
		}
	}
}

// up waits until the server is ready, for as long as it may be down.
func (w *restartWatch) up(ctx context.Context) error {
	if w.within > 0 && !w.down.IsZero() {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, w.within-time.Since(w.down), &lateError{w.within})
		defer stop()
	}
	return w.ready.ready(ctx, nil, func() error { return w.by.Ended(ctx) })
}
