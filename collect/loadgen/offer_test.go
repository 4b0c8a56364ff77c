package loadgen

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// ramp returns a phase whose level changes linearly.
func ramp(from, to float64, d time.Duration) Phase { return Phase{Duration: d, From: from, To: to} }

// open is an open loop of short prompts.
func open(a Arrival, rate float64) Load {
	return Load{Arrival: a, Rate: rate, CV: 1, PromptTokens: Fixed(4), OutputTokens: Fixed(2), Seed: 1}
}

func times(all []Intent) []time.Duration {
	var at []time.Duration
	for _, i := range all {
		at = append(at, i.At)
	}
	return at
}

// moments returns the mean and the coefficient of variation of the gaps, in seconds.
func moments(at []time.Duration) (mean, cv float64) {
	n := float64(len(at) - 1)
	mean = (at[len(at)-1] - at[0]).Seconds() / n
	sum := 0.0
	for i := 1; i < len(at); i++ {
		d := (at[i] - at[i-1]).Seconds() - mean
		sum += d * d
	}
	return mean, math.Sqrt(sum/n) / mean
}

func TestArrivalGaps(t *testing.T) {
	const n, rate = 20000, 50
	for _, tc := range []struct {
		name    string
		arrival Arrival
		cv      float64 // of the gaps
	}{
		{"Poisson", Poisson, 1},
		{"even gamma", Gamma, 0.3},
		{"bursty gamma", Gamma, 2.5},
		{"constant", Constant, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			load := open(tc.arrival, rate)
			load.CV = tc.cv
			at := times(take(t, load, n))
			mean, cv := moments(at)
			// Four standard errors: cv/√n of the mean, and for the CV of a gamma distribution about
			// cv·√((1+2cv²)/2n), doubled for its kurtosis.
			if off := 4 * tc.cv / math.Sqrt(n); math.Abs(mean*rate-1) > off+1e-6 {
				t.Errorf("%.3f req/s, want %d within %.1f %%", 1/mean, rate, 100*off)
			}
			if off := 8 * tc.cv * math.Sqrt((1+2*tc.cv*tc.cv)/(2*n)); math.Abs(cv-tc.cv) > off+1e-6 {
				t.Errorf("gaps vary by %.3f, want %.3f within %.3f", cv, tc.cv, off)
			}
			// Counts in windows of 20 ms: for a Poisson process their variance equals their mean.
			if tc.arrival == Poisson {
				if d := dispersion(at, 20*ms); math.Abs(d-1) > 0.05 {
					t.Errorf("counts have %.3f times the variance of a Poisson process", d)
				}
			}
		})
	}
}

func dispersion(at []time.Duration, window time.Duration) float64 {
	counts := make([]float64, at[len(at)-1]/window)
	for _, a := range at {
		if i := int(a / window); i < len(counts) {
			counts[i]++
		}
	}
	mean := float64(len(at)) / float64(len(counts))
	sum := 0.0
	for _, c := range counts {
		sum += (c - mean) * (c - mean)
	}
	return sum / float64(len(counts)) / mean
}

func TestRatesOfPhases(t *testing.T) {
	load := open(Poisson, 0)
	load.Phases = []Phase{Hold(100, 20*sec), ramp(100, 300, 20*sec), Hold(0, 5*sec), ramp(0, 200, 20*sec)}
	want := []float64{2000, 4000, 0, 2000}
	for _, arrival := range []Arrival{Poisson, Constant} {
		load.Arrival = arrival
		got := make([]float64, len(want))
		first := 0 // of the rising half of the second phase
		o, err := NewOffer(load)
		if err != nil {
			t.Fatal(err)
		}
		for !o.Over() {
			i := o.Next()
			o.Done(i.ID, Outcome{At: i.At, OK: true})
			got[o.Phase(i.At)]++
			if i.At >= 20*sec && i.At < 30*sec {
				first++
			}
		}
		for i := range want {
			off := 1.0
			if arrival == Poisson {
				off = 4 * math.Sqrt(want[i])
			}
			if math.Abs(got[i]-want[i]) > off {
				t.Errorf("%v: %v requests in phase %d, want %v within %.0f", arrival, got[i], i, want[i], off)
			}
		}
		if off := 4 * math.Sqrt(1500); math.Abs(float64(first)-1500) > off {
			t.Errorf("%v: %d requests in the first half of the ramp, want 1500", arrival, first)
		}
	}
}

// The requests of a seed must not change, because runs of different days and versions are compared.
// Change a hash only if the load is changed intentionally.
func TestOfferIsGolden(t *testing.T) {
	trace, err := ParseTrace("x", strings.NewReader(mooncakeTrace))
	if err != nil {
		t.Fatal(err)
	}
	mixed := Load{
		Arrival: Gamma, Rate: 20, CV: 2, PromptTokens: LognormalMean(100, 0.8, 600), OutputTokens: OneOf([]int{3, 5, 90}),
		SharedPrefixTokens: 20, PrefixGroups: 9, Turns: Between(1, 3), Think: Delay{Shape: Exponential, Mean: sec},
		Cancel: 0.2, Deadline: 9 * sec, Adapters: []Weighted{{"a", 1}, {"b", 3}}, Seed: 42,
	}
	closed := mixed
	closed.Arrival, closed.Clients, closed.Chat, closed.TokensPerWord = Closed, 7, true, 1.2
	for _, tc := range []struct {
		name string
		load Load
		want string
	}{
		{"open", mixed, "224c9db019d25cef"},
		{"closed", closed, "27f8b35d44e0ed15"},
		{"trace", Load{Arrival: Replay, Trace: trace, TraceSpeed: 2, Seed: 3}, "e5667e3a312acef1"},
	} {
		h := sha256.New()
		for _, i := range take(t, tc.load, 500) {
			fmt.Fprintf(h, "%+v\n", i)
		}
		if got := hex.EncodeToString(h.Sum(nil))[:16]; got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
}

// flakyServer returns the first n intents for a server with random answer times that fails every few requests.
func flakyServer(t *testing.T, load Load, seed uint64, n int) []Intent {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	o, err := NewOffer(load)
	if err != nil {
		t.Fatal(err)
	}
	type answer struct {
		id int
		at time.Duration
	}
	var flying []answer
	var all []Intent
	for len(all) < n {
		slices.SortFunc(flying, func(a, b answer) int { return int(a.at - b.at) })
		due, ok := o.Due()
		if len(flying) > 0 && (!ok || flying[0].at <= due) {
			o.Done(flying[0].id, Outcome{At: flying[0].at, OK: rng.IntN(5) > 0, Text: fmt.Sprint(" x", rng.IntN(9))})
			flying = flying[1:]
			continue
		}
		if !ok {
			break
		}
		i := o.Next()
		all = append(all, i)
		flying = append(flying, answer{i.ID, due + time.Duration(rng.ExpFloat64()*float64(2*sec))})
	}
	return all
}

func TestOpenLoopIgnoresTheServer(t *testing.T) {
	load := open(Gamma, 30)
	load.PromptTokens, load.OutputTokens, load.Cancel = Between(5, 50), Between(1, 50), 0.3
	want := flakyServer(t, load, 1, 300)
	if diff := cmp.Diff(want, flakyServer(t, load, 2, 300)); diff != "" {
		t.Error(diff)
	}
}

func TestClientsOfPhases(t *testing.T) {
	load := Load{PromptTokens: Fixed(4), OutputTokens: Fixed(2), Stagger: 2 * sec, Seed: 1}
	load.Phases = []Phase{Hold(4, 20*sec), Hold(10, 20*sec), ramp(10, 0, 20*sec), ramp(0, 4, 20*sec)}
	var count [80]int
	for _, i := range take(t, load, 1<<20) {
		count[i.At/sec]++
	}
	// Each request takes a second, so each second has as many as there are clients.
	for _, tc := range []struct{ at, want int }{{5, 4}, {19, 4}, {25, 10}, {39, 10}, {50, 5}, {59, 0}, {70, 2}, {79, 4}} {
		if got := count[tc.at]; got < tc.want-1 || got > tc.want+1 || tc.at < 40 && got != tc.want {
			t.Errorf("%d requests in second %d, want %d", got, tc.at, tc.want)
		}
	}
	if count[0] != 2 || count[1] != 4 {
		t.Errorf("%d and %d requests in the first two seconds, want half of the clients to start in each", count[0], count[1])
	}
}

func TestClientsStartApart(t *testing.T) {
	load := Load{Clients: 40, PromptTokens: Fixed(4), OutputTokens: Fixed(2), Seed: 1}
	starts := func() []time.Duration {
		o, err := NewOffer(load)
		if err != nil {
			t.Fatal(err)
		}
		var at []time.Duration
		for range load.Clients {
			at = append(at, o.Next().At)
		}
		return at
	}
	for i, a := range starts() {
		if low := time.Duration(i) * staggerEach; a < low || a >= low+staggerEach {
			t.Errorf("client %d starts at %v, want within 50 ms from %v", i, a, low)
		}
	}
	load.Together = true
	if at := starts(); at[39] != 0 {
		t.Errorf("the last client starts at %v, want all at once", at[39])
	}
}

func TestSessions(t *testing.T) {
	load := open(Poisson, 10)
	load.Turns, load.SharedPrefixTokens, load.PromptTokens = Fixed(3), 8, Fixed(20)
	load.Think, load.Requests = Always(2*sec), 600
	all := take(t, load, 600)
	last := map[int]Intent{}
	for _, i := range all {
		before, known := last[i.Session]
		if known != (i.Turn > 0) {
			t.Fatalf("turn %d of session %d, known %v", i.Turn, i.Session, known)
		}
		if known {
			want := before.Prompt + fmt.Sprintf(" answer %d", before.ID)
			if !strings.HasPrefix(i.Prompt, want+" ") {
				t.Fatalf("turn %d begins %q, want %q", i.Turn, i.Prompt, want)
			}
			if n := len(strings.Fields(i.Prompt)); n != i.PromptTokens || n != before.PromptTokens+2+12 {
				t.Errorf("turn %d has %d words, said to have %d, after %d and an answer of 2", i.Turn, n, i.PromptTokens, before.PromptTokens)
			}
			if i.At != before.At+3*sec {
				t.Errorf("turn %d comes %v after the previous one, want a second of answer and two of thought", i.Turn, i.At-before.At)
			}
		}
		last[i.Session] = i
	}
	// The rate is that of requests, not sessions.
	if rate := 600 / all[599].At.Seconds(); math.Abs(rate-10) > 2 {
		t.Errorf("%.1f requests a second, want 10", rate)
	}
}

// A session whose first turns failed starts again, with the system message or prefix of its group.
func TestFailedFirstTurnKeepsThePrefix(t *testing.T) {
	load := Load{
		Clients: 1, PromptTokens: Fixed(20), OutputTokens: Fixed(2), SharedPrefixTokens: 8, PrefixGroups: 1000,
		Turns: Fixed(4), Together: true,
	}
	for _, chat := range []bool{false, true} {
		load.Chat = chat
		o, err := NewOffer(load)
		if err != nil {
			t.Fatal(err)
		}
		begins := func(i Intent) string {
			if chat {
				return i.Messages[0].Role + " " + i.Messages[0].Content
			}
			return strings.Join(strings.Fields(i.Prompt)[:8], " ")
		}
		first := o.Next()
		o.Done(first.ID, Outcome{At: sec})
		second := o.Next()
		o.Done(second.ID, Outcome{At: 2 * sec, OK: true, Text: " yes"})
		third := o.Next()
		for _, i := range []Intent{second, third} {
			if begins(i) != begins(first) {
				t.Errorf("chat %v: turn %d begins with %q, want %q", chat, i.Turn, begins(i), begins(first))
			}
		}
		if second.PromptTokens != 20 || third.PromptTokens != 33 {
			t.Errorf("chat %v: prompts of %d and %d tokens, want 8+12, and 1+12 more", chat, second.PromptTokens, third.PromptTokens)
		}
		if chat && len(third.Messages) != 4 {
			t.Errorf("the third turn has %d messages, want system, user, assistant, user", len(third.Messages))
		}
	}
}

// A failed turn is dropped: chat templates reject two successive messages of one role.
func TestFailedTurnIsForgotten(t *testing.T) {
	load := Load{Clients: 1, PromptTokens: Fixed(5), OutputTokens: Fixed(2), Turns: Fixed(3), Together: true}
	o, err := NewOffer(load)
	if err != nil {
		t.Fatal(err)
	}
	first := o.Next()
	o.Done(first.ID, Outcome{At: sec, OK: true, Text: " yes"})
	second := o.Next()
	o.Done(second.ID, Outcome{At: 2 * sec})
	third := o.Next()
	if want := first.Prompt + " yes "; !strings.HasPrefix(third.Prompt, want) || strings.HasPrefix(third.Prompt, second.Prompt) {
		t.Errorf("after a failed turn the prompt is %q, want it to continue from %q", third.Prompt, want)
	}
	if third.At != 2*sec+backoffFirst {
		t.Errorf("the next request comes at %v, want a pause of 100 ms", third.At)
	}
}

func TestRetries(t *testing.T) {
	load := open(Constant, 1)
	load.Retry, load.Deadline, load.Requests = true, 1500*ms, 1
	o, err := NewOffer(load)
	if err != nil {
		t.Fatal(err)
	}
	var at []time.Duration
	for !o.Over() {
		due, _ := o.Due()
		i := o.Next()
		if i.ID != 0 || i.At != 0 || i.Attempt != len(at) {
			t.Errorf("attempt %d is %+v", len(at), i)
		}
		at = append(at, due)
		again := o.Done(i.ID, Outcome{At: due})
		if again == o.Over() {
			t.Errorf("attempt %d will be repeated %v, yet over is %v", i.Attempt, again, o.Over())
		}
	}
	var pauses []time.Duration
	for n := 1; n < len(at); n++ {
		pause := at[n] - at[n-1]
		if full := backoff(n); pause < full/2 || pause > full {
			t.Errorf("pause %d is %v, want %v to %v", n, pause, full/2, full)
		}
		pauses = append(pauses, pause)
	}
	if len(at) < 4 || at[len(at)-1] >= load.Deadline {
		t.Errorf("sent at %v, want attempts until the deadline of %v", at, load.Deadline)
	}
	other, _ := NewOffer(load)
	if got := other.retryPause(0, 1); got != pauses[0] {
		t.Errorf("the same seed pauses %v, then %v", pauses[0], got)
	}
	if got := other.retryPause(1, 1); got == pauses[0] {
		t.Errorf("two requests that failed together both pause %v", got)
	}
}

func TestRetriesEnd(t *testing.T) {
	load := open(Constant, 1)
	load.Retry, load.Requests = true, 1
	for _, tc := range []struct {
		name    string
		refused bool
		want    int
	}{
		{"refused as such", true, 1},
		{"never answered", false, maxAttempts},
	} {
		o, err := NewOffer(load)
		if err != nil {
			t.Fatal(err)
		}
		sent := 0
		for !o.Over() && sent < 10*maxAttempts {
			due, _ := o.Due()
			i := o.Next()
			sent++
			o.Done(i.ID, Outcome{At: due, Refused: tc.refused})
		}
		if sent != tc.want {
			t.Errorf("%s: sent %d times, want %d", tc.name, sent, tc.want)
		}
	}
}

func TestReplay(t *testing.T) {
	trace, err := ParseTrace("x", strings.NewReader(mooncakeTrace))
	if err != nil {
		t.Fatal(err)
	}
	all := take(t, Load{Arrival: Replay, Trace: trace, TraceSpeed: 2}, 9)
	if len(all) != 2 || all[1].At != 3053*ms/2 || all[0].MaxTokens != 52 || all[0].PromptTokens != 1100 {
		t.Fatalf("got %d requests at %v", len(all), times(all))
	}
	if n := len(strings.Fields(all[0].Prompt)); n != 1100 {
		t.Errorf("prompt of %d words, want 1100", n)
	}
	// The first two blocks have the same content.
	if !strings.HasPrefix(all[0].Prompt, all[1].Prompt+" ") {
		t.Error("equal blocks have different texts")
	}
	// Lengths of a trace at another rate, repeatedly.
	all = take(t, Load{Arrival: Constant, Rate: 1, Trace: trace}, 5)
	if all[4].MaxTokens != 52 || all[3].MaxTokens != 26 || all[4].At != 4*sec {
		t.Errorf("got %d and %d tokens, the last at %v", all[3].MaxTokens, all[4].MaxTokens, all[4].At)
	}
	if all[4].Prompt != all[0].Prompt {
		t.Error("a block has another text when it comes again")
	}
}
