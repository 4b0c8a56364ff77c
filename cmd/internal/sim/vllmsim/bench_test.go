package vllmsim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
)

// users keeps n clients busy, each with its next request as soon as the last is
// answered.
type users struct {
	v      *Server
	r      *rand.Rand
	call   func(r *rand.Rand) Call
	tokens int
	done   int
}

func (u *users) send(now time.Duration) {
	if _, err := u.v.Submit(now, u.call(u.r), func(got Update) {
		u.tokens += len(got.Tokens)
		if got.Finish != core.NotFinished {
			u.done++
			u.send(got.At)
		}
	}); err != nil {
		panic(err)
	}
}

func (u *users) start(n int) {
	for i := range n {
		u.send(u.v.Healthy() + time.Duration(i)*50*time.Millisecond)
	}
}

func benchServer(b *testing.B, args ...string) *Server {
	b.Helper()
	s := parsed(b, args...)
	v, err := Start(s, nil, 0, epoch)
	if err != nil {
		b.Fatal(err)
	}
	return v
}

// benchmarkSteps lets a fixed batch decode, end to end.
func benchmarkSteps(b *testing.B, batch int) {
	v := benchServer(b, "--sim-gpu", "NVIDIA H200", "--tensor-parallel-size", "4", "--max-num-seqs", "1024", "--num-gpu-blocks-override", "200000", "--max-num-batched-tokens", "8192")
	u := &users{v: v, r: rand.New(rand.NewPCG(1, 1)), call: func(r *rand.Rand) Call {
		return Call{Tokens: make([]core.Token, 100), MaxTokens: 6000 + r.IntN(2000), IgnoreEOS: true, Quiet: true}
	}}
	u.start(batch)
	run(v, v.Healthy()+time.Duration(batch)*60*time.Millisecond)
	steps := v.ranks[0].steps
	b.ReportAllocs()
	for b.Loop() {
		for target := v.ranks[0].steps + 1; v.ranks[0].steps < target; {
			at, _ := v.Next()
			v.Advance(at)
		}
	}
	b.ReportMetric(float64(v.ranks[0].steps-steps)/b.Elapsed().Seconds(), "steps/s")
}

func BenchmarkStepsOfOne(b *testing.B) { benchmarkSteps(b, 1) }

func BenchmarkStepsOf256(b *testing.B) { benchmarkSteps(b, 256) }

// BenchmarkHourOfS3 is an hour of scenario S3: 64 users of 256 tokens in and about
// 1,024 out on an 8B model whose KV pool holds a third of them, scraped each second.
func BenchmarkHourOfS3(b *testing.B) {
	for b.Loop() {
		v := benchServer(b, "--sim-gpu", "NVIDIA H100 80GB HBM3", "--num-gpu-blocks-override", "2000", "--max-num-seqs", "256")
		u := &users{v: v, r: rand.New(rand.NewPCG(1, 1)), call: func(r *rand.Rand) Call {
			return Call{Prompt: prompt(256, r.Uint64()), MaxTokens: 512 + r.IntN(1024), IgnoreEOS: true}
		}}
		u.start(64)
		var page []byte
		for at := v.Healthy(); at <= v.Healthy()+time.Hour; at += time.Second {
			run(v, at)
			page = v.Page(page[:0], at)
			_ = v.GPUs(at)
		}
		t := v.Totals()
		b.ReportMetric(float64(v.ranks[0].steps), "steps")
		b.ReportMetric(t.GenerationTokens/3600, "tok/s")
		b.ReportMetric(t.Preemptions, "preemptions")
	}
}
