package vllmsim

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/perf"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// fakeMachine generates one token per request and step, up to MaxTokens (4 if the request sets none). Its
// channels report its calls to the test; all else runs on the loop's goroutine.
type fakeMachine struct {
	healthy time.Duration
	step    time.Duration
	refuse  error // of every Submit
	fail    error // of every request, after its first token
	failNow bool  // and before it
	hold    bool  // no request ever gets a token
	dead    bool

	next      time.Duration
	advances  int
	steps     int
	last      core.ID
	live      []*fakeRequest
	cancelled chan core.ID
	submitted chan Call
	injected  chan settings.Fault

	mu       sync.Mutex
	answered []string // of HTTP
}

type fakeRequest struct {
	id          core.ID
	call        Call
	sink        Sink
	incarnation core.History
}

func newFake() *fakeMachine {
	return &fakeMachine{
		step: time.Millisecond, cancelled: make(chan core.ID, 64), submitted: make(chan Call, 64), injected: make(chan settings.Fault, 8),
	}
}

func (m *fakeMachine) Healthy() time.Duration { return m.healthy }

func (m *fakeMachine) Submit(now time.Duration, c Call, sink Sink) (core.ID, error) {
	if m.dead {
		return 0, ErrDead
	}
	if m.refuse != nil {
		return 0, m.refuse
	}
	m.last++
	q := &fakeRequest{id: m.last, call: c, sink: sink, incarnation: core.History{ID: m.last, Arrival: now, PromptTokens: len(c.Tokens)}}
	if c.Tokens == nil {
		q.incarnation.PromptTokens = len(AppendTokens(nil, c.Prompt))
	}
	q.incarnation.CachedTokens = 3
	if len(m.live) == 0 {
		m.next = now + m.step
	}
	m.live = append(m.live, q)
	m.submitted <- c
	return q.id, nil
}

func (m *fakeMachine) Cancel(_ time.Duration, id core.ID) {
	for i, q := range m.live {
		if q.id == id {
			m.live = append(m.live[:i:i], m.live[i+1:]...)
			break
		}
	}
	m.cancelled <- id
}

func (m *fakeMachine) Next() (time.Duration, bool) { return m.next, len(m.live) > 0 && !m.hold }

func (m *fakeMachine) Advance(now time.Duration) {
	m.advances++
	for len(m.live) > 0 && !m.hold && m.next <= now {
		m.steps++
		at := m.next
		m.next += m.step
		var rest []*fakeRequest
		for _, q := range m.live {
			if !m.generate(q, at) {
				rest = append(rest, q)
			}
		}
		m.live = rest
	}
}

// generate sends the next token of a request and reports whether it was the last.
func (m *fakeMachine) generate(q *fakeRequest, at time.Duration) bool {
	if m.failNow || m.fail != nil && q.incarnation.OutputTokens > 0 {
		q.sink(Update{At: at, Err: m.fail, Finish: core.Error, History: &q.incarnation})
		return true
	}
	want := q.call.MaxTokens
	if want == 0 {
		want = 4
	}
	id := core.Token(q.incarnation.OutputTokens + 7)
	q.incarnation.OutputTokens++
	if q.incarnation.OutputTokens == 1 {
		q.incarnation.FirstToken = at
	}
	u := Update{At: at, Tokens: []core.Token{id}, Text: TokenText(id)}
	if q.incarnation.OutputTokens == want {
		u.Finish, u.History = core.Length, &q.incarnation
		if q.call.MaxTokens == 0 {
			u.Finish = core.Stop
		}
	}
	if !q.call.Once {
		q.sink(u)
	} else if u.History != nil {
		u.Tokens = nil
		for i := range want {
			u.Tokens = append(u.Tokens, core.Token(i+7))
		}
		u.Text = JoinTokens(u.Tokens)
		q.sink(u)
	}
	return u.History != nil
}

func (m *fakeMachine) Page(buf []byte, _ time.Duration) []byte {
	return append(buf, "# TYPE sim_info gauge\nsim_info{seed=\"1\",time_scale=\"1\"} 1.0\n"...)
}

func (m *fakeMachine) GPUs(now time.Duration) []perf.Reading {
	return []perf.Reading{{
		Index: 0, Name: "H100 SXM", UUID: "GPU-5151", Util: 0.5, MemUtil: 0.25, DRAMActive: 0.125, TensorActive: 0.0625, SMActive: 0.75,
		PowerW: 350, LimitW: 700, VRAMTotal: 80 << 30, VRAM: 60 << 30, TemperatureC: 61, SMClockMHz: 1980, MemClockMHz: 2619,
		EnergyJ: now.Seconds() * 350, Throttle: 4, NVLinkTx: 1e9, PCIeTx: 2e8,
	}, {Index: 1, Name: "H100 SXM", UUID: "GPU-5252", LimitW: 700, VRAMTotal: 80 << 30}}
}

func (m *fakeMachine) Sizing() perf.Sizing { return perf.Sizing{NumBlocks: 100} }

func (m *fakeMachine) Inject(_ time.Duration, f settings.Fault) error {
	if f.Rank > 1 {
		return errors.New("there is no such rank")
	}
	m.injected <- f
	return nil
}

func (m *fakeMachine) Dead() bool { return m.dead }

func (m *fakeMachine) HTTP(path string, status int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answered = append(m.answered, path+" "+http.StatusText(status))
}

func fakeSettings() *settings.Settings {
	return &settings.Settings{
		Release: "0.32", ModelName: "org/model", Served: []string{"model", "alias"}, LoRAModules: []string{"adapter"}, LoRA: true,
		GPU: catalog.GPU{Name: "H100 SXM"}, TensorParallel: 1, DataParallel: 1,
		StreamInterval: 1, Scale: 1, Config: core.Config{MaxModelLen: 4096, Seed: 1},
	}
}

// host starts a host at an address of this process with a machine of the test's,
// and waits until it answers.
func host(t *testing.T, m machine, s *settings.Settings) *Host {
	t.Helper()
	h := unready(t, m, s)
	if err := h.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h
}

func unready(t *testing.T, m machine, s *settings.Settings) *Host {
	t.Helper()
	h := &Host{address: programtest.Address(t).String(), clock: newClock(s.Scale)}
	h.begin(m, s)
	t.Cleanup(func() { h.Close(context.Background(), false) })
	return h
}

// answer is an HTTP answer without the parts that differ between calls.
type answer struct {
	status int
	header http.Header
	body   string
}

var (
	anyID      = regexp.MustCompile(`(cmpl|chatcmpl|modelperm)-[0-9a-f]{32}`)
	anyCreated = regexp.MustCompile(`"created":\d+`)
	anyPrint   = regexp.MustCompile(`"system_fingerprint":"vllm-0\.32\.0\+sim-[0-9a-f]{8}"`)
)

func ask(t *testing.T, h *Host, method, path, body string, header ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, h.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	s := anyID.ReplaceAllString(string(text), "$1-ID")
	s = anyCreated.ReplaceAllString(s, `"created":0`)
	s = anyPrint.ReplaceAllString(s, `"system_fingerprint":"FP"`)
	return answer{w.StatusCode, w.Header, s}
}
