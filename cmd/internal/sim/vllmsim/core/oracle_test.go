package core

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// recorded is one scenario as testdata/record.py wrote it.
type recorded struct {
	Config struct {
		Seed                             uint64
		Slots, Length, Block, Blocks     int
		Caching, Chunked, Async, Reserve bool
		Policy                           string
		Watermark                        float64
		Threshold, Loras, Budget         int
	}
	Calls []struct {
		Before, During []recordedCall
		Begin          *struct {
			Work      [][2]int // request, tokens
			Preempted []ID     // sorted
			State     recordedState
		}
		Complete struct {
			Outputs       []ID
			Ends          []recordedEnd
			Queries, Hits int
			State         recordedState
		}
	}
}

// recordedCall is a submission or else an abort.
type recordedCall struct {
	Submit *struct {
		ID                       ID
		Arrival                  int64
		Prompt                   []Token
		Max, Stop, Min, Priority int
		Adapter                  string
		Salt                     uint64
	}
	Abort ID
}

type recordedEnd struct {
	ID     ID
	Reason string
}

func (r *recordedEnd) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&r.ID, &r.Reason})
}

// recordedState is a scheduler as it stands: running and waiting requests in
// order, how many of the latter are set aside, and a checksum of the free blocks in
// order and of each running request's.
type recordedState struct {
	Running, Waiting []ID
	Deferred         int
	Blocks           uint32
}

func (s *recordedState) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&s.Running, &s.Waiting, &s.Deferred, &s.Blocks})
}

func (s *recordedState) equal(o *recordedState) bool {
	return slices.Equal(s.Running, o.Running) && slices.Equal(s.Waiting, o.Waiting) && s.Deferred == o.Deferred && s.Blocks == o.Blocks
}

func stateOf(e *Engine) recordedState {
	s := recordedState{Deferred: len(e.skipped.list)}
	var blocks []byte
	add := func(b int32) {
		if len(blocks) > 0 {
			blocks = append(blocks, ',')
		}
		blocks = fmt.Append(blocks, b)
	}
	for b := e.pool.next[0]; b != 0; b = e.pool.next[b] {
		add(b)
	}
	for _, r := range e.running {
		s.Running = append(s.Running, r.req.ID)
		add(0)
		for _, b := range r.blocks {
			add(b)
		}
	}
	s.Blocks = crc32.ChecksumIEEE(blocks)
	// vLLM 0.32.0 keeps both in one queue, those set aside first or, by the
	// priority policy, sorted in.
	all := slices.Concat(e.skipped.list, e.waiting.list)
	if e.config.Policy == Priority {
		slices.SortFunc(all, func(a, b *sequence) int {
			if a.sooner(b) {
				return -1
			}
			return 1
		})
	}
	for _, r := range all {
		s.Waiting = append(s.Waiting, r.req.ID)
	}
	return s
}

// TestAgainstVLLM replays what the scheduler of vLLM 0.32.0 itself did in random
// scenarios: which requests each step computes and for how many tokens, whom it
// preempts, every queue, every block of every request and the order of the free
// ones, ends and prefix-cache counters.
func TestAgainstVLLM(t *testing.T) {
	f, err := os.Open(filepath.Join("testdata", "vllm-0.32.0.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<24)
	n := 0
	for lines.Scan() {
		var r recorded
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if !replay(t, &r) {
			return
		}
		n++
	}
	if err := lines.Err(); err != nil || n < 100 {
		t.Errorf("%d scenarios, %v", n, err)
	}
}

func replay(t *testing.T, r *recorded) bool {
	t.Helper()
	k := &r.Config
	c := Config{
		MaxNumSeqs: k.Slots, MaxNumBatchedTokens: k.Budget, MaxModelLen: k.Length, BlockSize: k.Block, NumBlocks: k.Blocks,
		PrefixCaching: k.Caching, ChunkedPrefill: k.Chunked, LongPrefillTokenThreshold: k.Threshold,
		ReserveFullISL: k.Reserve, Watermark: k.Watermark, AsyncScheduling: k.Async, MaxLoras: k.Loras, Seed: k.Seed,
	}
	if k.Policy == "priority" {
		c.Policy = Priority
	}
	e := NewEngine(c)
	for i, call := range r.Calls {
		fail := func(what, diff string) bool {
			t.Errorf("scenario %d, call %d: %s (-vLLM +engine)\n%s\n%+v", k.Seed, i, what, diff, c)
			return false
		}
		now := time.Duration(i) * time.Millisecond
		submit(e, call.Before, now)
		b, ok := e.Begin(now)
		if call.Begin == nil {
			// The recorder makes no step where nothing is scheduled; the engine may
			// have the end of a request to report that was aborted as it waited.
			if ok && !(len(b.Work) == 0 && len(e.ends) > 0) {
				return fail("Begin", fmt.Sprintf("+%+v", b))
			}
			if ok {
				e.Complete(now)
			}
			continue
		}
		if !ok {
			return fail("Begin", fmt.Sprintf("-%+v", call.Begin.Work))
		}
		var work [][2]int
		for _, w := range b.Work {
			work = append(work, [2]int{int(w.ID), w.New})
		}
		slices.Sort(b.Preempted)
		if !slices.Equal(call.Begin.Work, work) || !slices.Equal(call.Begin.Preempted, b.Preempted) {
			return fail("batch", cmp.Diff(call.Begin.Work, work)+cmp.Diff(call.Begin.Preempted, b.Preempted))
		}
		if s := stateOf(e); !s.equal(&call.Begin.State) {
			return fail("state after Begin", cmp.Diff(call.Begin.State, s))
		}
		submit(e, call.During, now)
		got := e.Complete(now + 1)
		want := call.Complete
		var outputs []ID
		var ends []recordedEnd
		for _, o := range got.Outputs {
			if !o.HasToken {
				continue // an abort, which vLLM's scheduler does not output
			}
			outputs = append(outputs, o.ID)
			if o.Finish != NotFinished {
				ends = append(ends, recordedEnd{o.ID, o.Finish.String()})
			}
		}
		if !slices.Equal(want.Outputs, outputs) || !slices.Equal(want.Ends, ends) {
			return fail("outputs", cmp.Diff(want.Outputs, outputs)+cmp.Diff(want.Ends, ends))
		}
		if want.Queries != got.PrefixQueries || want.Hits != got.PrefixHits {
			return fail("prefix cache", fmt.Sprintf("-%d hits of %d\n+%d of %d", want.Hits, want.Queries, got.PrefixHits, got.PrefixQueries))
		}
		if s := stateOf(e); !s.equal(&want.State) {
			return fail("state after Complete", cmp.Diff(want.State, s))
		}
	}
	return true
}

func submit(e *Engine, calls []recordedCall, now time.Duration) {
	for _, c := range calls {
		if c.Submit == nil {
			e.Abort(c.Abort)
			continue
		}
		q := c.Submit
		e.Submit(Request{
			ID: q.ID, Arrival: time.Duration(q.Arrival), Prompt: q.Prompt, MaxTokens: q.Max, StopAfter: q.Stop, MinTokens: q.Min,
			Priority: q.Priority, Adapter: q.Adapter, Salt: q.Salt,
		})
	}
}
