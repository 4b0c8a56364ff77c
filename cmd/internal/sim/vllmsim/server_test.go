package vllmsim

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// epoch is the wall time at which the processes of the test servers start.
var epoch = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// parsed is an 8B model on one A100, with the arguments added to it.
func parsed(t testing.TB, args ...string) *settings.Settings {
	t.Helper()
	argv := append([]string{
		"meta-llama/Llama-3.1-8B-Instruct", "--sim-gpu", "NVIDIA A100-SXM4-80GB", "--sim-startup-time", "30s", "--sim-seed", "1",
		"--max-model-len", "8192", "--num-gpu-blocks-override", "4000",
	}, args...)
	s, err := settings.Parse(argv, nil)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return s
}

func start(t testing.TB, s *settings.Settings) *Server {
	t.Helper()
	v, err := Start(s, 0, epoch)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// run handles all events up to a time, one by one.
func run(v *Server, until time.Duration) {
	for {
		at, ok := v.Next()
		if !ok || at > until {
			v.Advance(until)
			return
		}
		v.Advance(at)
	}
}

// drain runs until there are no more events.
func drain(t testing.TB, v *Server) time.Duration {
	t.Helper()
	last := v.now
	for {
		at, ok := v.Next()
		if !ok {
			return last
		}
		if at < last {
			t.Fatalf("Next went back from %v to %v", last, at)
		}
		if at > last+24*time.Hour {
			t.Fatalf("nothing for a day after %v", last)
		}
		last = at
		v.Advance(at)
	}
}

// prompt is text of n tokens, the same for the same seed.
func prompt(n int, seed uint64) string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	r := rand.New(rand.NewPCG(seed, 7))
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		for range 4 {
			b.WriteByte(letters[r.IntN(len(letters))])
		}
	}
	return b.String()
}

// tally is the result of one client.
type tally struct {
	updates, tokens int
	text            strings.Builder
	first, last     time.Duration
	finish          core.Reason
	err             error
	history         *core.History
	ends            int
}

func (c *tally) sink(u Update) {
	if c.updates == 0 {
		c.first = u.At
	}
	c.updates++
	c.tokens += len(u.Tokens)
	c.text.WriteString(u.Text)
	c.last = u.At
	if u.Finish != core.NotFinished {
		c.finish, c.err = u.Finish, u.Err
		c.ends++
	}
	if u.History != nil {
		history := *u.History
		c.history = &history
	}
}

func submit(t testing.TB, v *Server, now time.Duration, c Call) (*tally, core.ID) {
	t.Helper()
	got := &tally{}
	id, err := v.Submit(now, c, got.sink)
	if err != nil {
		t.Fatal(err)
	}
	return got, id
}

func TestOneRequest(t *testing.T) {
	v := start(t, parsed(t))
	at := v.Healthy()
	got, _ := submit(t, v, at, Call{Prompt: prompt(1000, 1), MaxTokens: 50, IgnoreEOS: true})
	drain(t, v)
	if got.tokens != 50 || got.updates != 50 || got.ends != 1 || got.finish != core.Length || got.err != nil {
		t.Fatalf("%d tokens in %d updates, %d ends, finish %v, error %v", got.tokens, got.updates, got.ends, got.finish, got.err)
	}
	l := got.history
	if l.PromptTokens != 1000 || l.OutputTokens != 50 {
		t.Errorf("history has %d + %d tokens, want 1000 + 50", l.PromptTokens, l.OutputTokens)
	}
	if !(at <= l.Arrival && l.Arrival < l.Queued && l.Queued <= l.Scheduled && l.Scheduled < l.FirstToken && l.FirstToken < got.first && l.LastToken < got.last) {
		t.Errorf("times are out of order: at %v, history %+v, seen %v to %v", at, l, got.first, got.last)
	}
	if n := len(strings.Fields(got.text.String())); n != 50 {
		t.Errorf("text has %d words, want 50", n)
	}
	if len(v.requests) != 0 {
		t.Errorf("%d requests in flight after the end", len(v.requests))
	}
}
