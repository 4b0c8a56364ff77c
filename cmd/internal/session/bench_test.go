package session

import (
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/rules"
)

// BenchmarkPoll measures the CPU cost of one poll without the network: a real page of 53 KB is
// parsed, merged and added to its window. At 4 polls per second, 2.5 ms would be 1 % of a core.
func BenchmarkPoll(b *testing.B) {
	body := loadedPage(b)
	a, err := NewAnalysis(Header{})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	at := time.Duration(0)
	for b.Loop() {
		a.Add(&Poll{T: at, PageT: at, Took: time.Millisecond, Body: body})
		at += engine.PollInterval
		if len(a.windows) > 900 { // half an hour: exclude the memory of the run from the result
			a.windows = a.windows[:0]
		}
	}
}

// loadedPage returns a page of 53 KB from a real server under load.
func loadedPage(b *testing.B) string {
	b.Helper()
	f, err := os.Open(filepath.Join("..", "..", "..", "collect", "vllm", "testdata", "vllm-0.32.0-cpu-loaded.txt.gz"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		b.Fatal(err)
	}
	page, err := io.ReadAll(z)
	if err != nil {
		b.Fatal(err)
	}
	return string(page)
}

// BenchmarkLive measures the CPU cost of one second of a live session without the network and the
// screen: four polls of a page of 53 KB are fetched from memory, parsed, handled by the loop and
// published. 10 ms would be 1 % of a core.
func BenchmarkLive(b *testing.B) {
	for _, c := range []struct {
		name   string
		record *Recorder
	}{{"watching", nil}, {"recording", NewRecorder(io.Discard)}} {
		b.Run(c.name, func(b *testing.B) { benchmarkLive(b, c.record) })
	}
}

func benchmarkLive(b *testing.B, record *Recorder) {
	body := loadedPage(b)
	at := time.Duration(0)
	l := NewLive(LivePlan{
		Loop:  loop.Plan{Version: "test", Rules: rules.All()},
		Clock: func() time.Duration { return at }, Record: record,
	})
	c := newConductor(l)
	c.heartbeat = time.NewTimer(heartbeat)
	defer c.heartbeat.Stop()
	ctx := b.Context()
	c.step(ctx, loop.Begin{})
	c.cancelAttach()
	in := attachedLine{Header: Header{Inputs: slots("4")}}
	attached, err := in.input()
	if err != nil {
		b.Fatal(err)
	}
	c.handle(ctx, attached, line{Attached: &in})
	parser := newParser("")
	p := poller{pages: newTextPages(body), clock: l.plan.Clock}
	poll := func() {
		poll := p.poll(ctx, at)
		c.sampled(ctx, polled{poll, parser.sample(poll)})
		at += engine.PollInterval
	}
	for range 400 { // until the loop has a baseline and a full window of each kind
		poll()
	}
	b.ReportAllocs()
	for b.Loop() {
		for range 4 {
			poll()
		}
	}
	if s := l.Latest(); s.Live == nil || s.Live.Windows.Evaluable == 0 {
		b.Fatalf("nothing was diagnosed: %+v", s.Progress)
	}
}

// textPages is a server whose page changes only in its output tokens.
type textPages struct {
	before, behind string // the number of tokens
	tokens         int
}

func newTextPages(body string) *textPages {
	_, behind, _ := strings.Cut(body, "\nvllm:generation_tokens_total{")
	_, behind, _ = strings.Cut(behind, "} ")
	_, rest, _ := strings.Cut(behind, "\n")
	return &textPages{before: body[:len(body)-len(behind)], behind: "\n" + rest, tokens: 1e6}
}

func (p *textPages) Page(_ context.Context, buf []byte) ([]byte, error) {
	p.tokens += 300
	buf = append(buf, p.before...)
	buf = strconv.AppendInt(buf, int64(p.tokens), 10)
	return append(buf, p.behind...), nil
}
