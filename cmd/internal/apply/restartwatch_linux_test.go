package apply

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// pageOf is a page of a server with what it has generated; start 0 tells no time.
func pageOf(start, tokens int) string {
	page := fmt.Sprintf("vllm:generation_tokens_total{engine=\"0\"} %d\nvllm:prompt_tokens_total{engine=\"0\"} %d\nvllm:request_success_total{engine=\"0\"} %d\n",
		tokens, 2*tokens, tokens/100)
	if start > 0 {
		page += fmt.Sprintf("process_start_time_seconds %d\n", start)
	}
	return page
}

// nobody is a page that nobody is there to give, keyed one that asks for a key.
const (
	nobody = ""
	keyed  = "401"
)

// The pages are what a server shows one after the other, the last of them forever:
// the first before its program is called, the rest while it runs and after it.
func TestWitness(t *testing.T) {
	for _, c := range []struct {
		name   string
		pages  []string
		during int // pages that are shown while the program runs
		want   bool
	}{
		{"another start", []string{pageOf(100, 5000), pageOf(160, 0)}, 0, true},
		{"another start, later", []string{pageOf(100, 5000), pageOf(100, 5100), pageOf(100, 5200), pageOf(160, 10)}, 0, true},
		{"another start, and more done by then than before", []string{pageOf(100, 500), pageOf(160, 9000)}, 0, true},
		{"the same start", []string{pageOf(100, 5000), pageOf(100, 5100)}, 0, false},
		{"the same start after a moment without an answer", []string{pageOf(100, 5000), nobody, pageOf(100, 5100)}, 0, false},
		{"counters fell", []string{pageOf(0, 5000), pageOf(0, 100)}, 0, true},
		{"counters fell while the program ran, and are higher now", []string{pageOf(0, 500), pageOf(0, 10), pageOf(0, 9000)}, 1, true},
		{"counters fell from where they were then", []string{pageOf(0, 500), pageOf(0, 9000), pageOf(0, 600)}, 1, true},
		{"counters go on", []string{pageOf(0, 5000), pageOf(0, 5100)}, 0, false},
		{"a moment without an answer", []string{pageOf(0, 500), nobody, pageOf(0, 9000)}, 0, true},
		{"a moment without an answer while the program ran", []string{pageOf(0, 500), nobody, pageOf(0, 9000)}, 2, true},
		{"an older start that ran on", []string{pageOf(200, 5000), pageOf(100, 9000)}, 0, true},
		{"a page that cannot be read tells nothing", []string{keyed}, 0, true},
		{"nor one that could not be read at first", []string{keyed, pageOf(100, 5000)}, 0, true},
		{"it was down before", []string{nobody, nobody, nobody, pageOf(100, 5000)}, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var shown atomic.Int64
			mux := http.NewServeMux()
			mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
				page := c.pages[min(int(shown.Add(1))-1, len(c.pages)-1)]
				switch page {
				case nobody:
					http.Error(w, "no server", http.StatusBadGateway)
				case keyed:
					http.Error(w, "a key, please", http.StatusUnauthorized)
				}
				fmt.Fprint(w, page)
			})
			mux.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
			mux.HandleFunc("/v1/models", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":[{"id":"fake"}]}`) })
			mux.HandleFunc("/v1/completions", func(w http.ResponseWriter, r *http.Request) { fakeCompletion(w, r, 0) })
			server := httptest.NewServer(mux)
			defer server.Close()
			r := Readiness{URL: server.URL, Within: hang, Answer: hang}
			if !c.want {
				r.Within = 1200 * time.Millisecond
			}
			w, err := r.watchRestart(t.Context())
			must(t, err)
			defer w.close()
			err = watched(t.Context(), w, func() error {
				for begun := shown.Load(); shown.Load() < begun+int64(c.during); {
					time.Sleep(10 * time.Millisecond)
				}
				return nil
			})
			if err == nil {
				err = Readiness{}.restarted(t.Context(), w, aProgram)
			}
			if !c.want && (err == nil || err.Error() != "the server was not restarted: it answers as before, 1.2s after restart ended") || c.want && err != nil {
				t.Errorf("restarted %v: %v", c.want, err)
			}
		})
	}
}

// aProgram is a manager that says nothing of the servers that it starts.
var aProgram = newUserProgram(&launcher.Launch{Argv: []string{"/opt/restart"}}, "", 0, 0)

// What leaves nobody answering for longer than it may is called off: while it is done,
// and after it.
func TestWitnessCallsOffWhatIsLate(t *testing.T) {
	for name, during := range map[string]bool{"during it": true, "after it": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var down atomic.Bool
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if down.Load() {
					http.Error(w, "no server", http.StatusBadGateway)
				}
				fmt.Fprint(w, pageOf(100, 5000))
			}))
			defer server.Close()
			w, err := Readiness{URL: server.URL, Within: hang, Answer: hang}.watchRestart(t.Context())
			must(t, err)
			defer w.close()
			ctx, stop := w.bounded(t.Context(), loop.Apply{Within: 400 * time.Millisecond})
			defer stop()
			err = watched(ctx, w, func() error {
				down.Store(true)
				if during {
					<-ctx.Done()
					return context.Cause(ctx)
				}
				return nil
			})
			if err == nil {
				err = Readiness{}.restarted(ctx, w, aProgram)
			}
			if !late(err) {
				t.Errorf("%v, want that it was late", err)
			}
		})
	}
}

// A program that returns before the server is restarted has not made the change yet.
func TestHookWaitsForTheRestart(t *testing.T) {
	const later = `trap - EXIT; (sleep 0.6; printf x >>"$STARTS") </dev/null >/dev/null 2>&1 &`
	t.Parallel()
	h, _, calls := hooked(t, later)
	mustApply(t, h, slots(4, 8))
	if starts, err := os.ReadFile(filepath.Join(filepath.Dir(calls), "starts")); err != nil || len(starts) != 1 {
		t.Errorf("the trial would begin on the server of before: started %d times since, %v", len(starts), err)
	}
}

func TestHookThatRestartsNothing(t *testing.T) {
	t.Parallel()
	h, n, calls := hooked(t, "trap - EXIT")
	h.plan.Ready.Within = 500 * time.Millisecond
	got := h.Apply(t.Context(), slots(4, 8))
	// The revert need not restart what was never touched.
	want := "the change could not be made: the server was not restarted: it answers as before, 500ms after restart ended; the server runs as before"
	if got.Err != want || !got.Back || len(told(t, calls)) != 2 {
		t.Errorf("answer %+v", got)
	}
	if s := journal.Reduce(n.records); !s.Settled() {
		t.Errorf("the journal leaves %v", s.Stage)
	}
	// A change that is in place is not taken back by saying so.
	h.runs = []engine.Change{{Flag: "--max-num-seqs", From: "4", To: "8"}}
	got = h.Apply(t.Context(), loop.Apply{Revert: true, Changes: []engine.Change{{Flag: "--max-num-seqs", From: "8", To: "4"}}})
	if got.Back || !strings.Contains(got.Err, "and it could not be reverted: the server was not restarted") {
		t.Errorf("revert: %+v", got)
	}
}
