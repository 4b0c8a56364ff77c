package page_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/page"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

var update = flag.Bool("update", false, "write the golden pages anew")

// smallRun is two requests, one of which is preempted and half cached, on a server
// of one engine.
func smallRun(release string, servers int) *page.Book {
	b := page.NewBook(tiny(func(s *settings.Settings) {
		s.Release, s.APIServers, s.MaxModelLen = release, servers, 128
		s.Seed, s.Scenario, s.Scale = 7, "kv-capped", 20
		s.LoRA, s.MaxLoras = true, 2
	}), page.Cache{NumBlocks: 33, SizeTokens: 4096, MaxConcurrency: 32}, start)
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	first := &core.History{
		ID: 1, Arrival: ms(100), Queued: ms(102), Scheduled: ms(103), FirstToken: ms(130), LastToken: ms(130),
		PromptTokens: 64, CachedTokens: 32, OutputTokens: 1, MaxTokens: 3,
	}
	b.Observe(0, &core.Report{
		Step: 1, Began: ms(103), Ended: ms(130), ComputedPrompt: 32, PrefixQueries: 64, PrefixHits: 32,
		Outputs: []core.Output{{ID: 1, HasToken: true, First: true, History: first}},
		State:   core.State{Running: 1, WaitingCapacity: 1, KVUsage: 0.03125},
	})
	b.Adapters(ms(130), []string{"sql", "chat"})
	b.Observe(0, &core.Report{Step: 2, Began: ms(130), Ended: ms(140), Preemptions: 1, State: core.State{WaitingCapacity: 2}})
	first.Preemptions = 1
	second := &core.History{
		ID: 2, Arrival: ms(101), Queued: ms(103), Scheduled: ms(140), FirstToken: ms(175), LastToken: ms(175),
		PromptTokens: 100, OutputTokens: 1, MaxTokens: 28,
	}
	b.Observe(0, &core.Report{
		Step: 3, Began: ms(140), Ended: ms(175), ComputedPrompt: 100, PrefixQueries: 100,
		Outputs: []core.Output{{ID: 2, HasToken: true, First: true, Finish: core.Stop, History: second}},
		State:   core.State{WaitingCapacity: 1},
	})
	b.Append(nil, ms(176))
	b.HTTP("POST", "/v1/completions", 200, ms(75), 512, 300)
	for i, end := range []int{190, 200} {
		first.LastToken, first.OutputTokens = ms(end), 2+i
		o := core.Output{ID: 1, HasToken: true, Gap: ms([]int{60, 10}[i]), History: first}
		if i == 1 {
			o.Finish = core.Length
		}
		b.Observe(0, &core.Report{
			Step: uint64(4 + i), Ended: ms(end), Outputs: []core.Output{o},
			State: core.State{Running: 1 - i, KVUsage: 0.03125 * float64(1-i)},
		})
	}
	b.Adapters(ms(200), nil)
	b.HTTP("POST", "/v1/chat/completions", 200, ms(101), 700, 0)
	b.HTTP("GET", "/metrics", 200, ms(4), 0, 40_000)
	b.CPU(ms(1234))
	return b
}

func TestGoldenPages(t *testing.T) {
	for name, b := range map[string]*page.Book{
		"0.10.txt": smallRun("0.10", 1), "0.11.txt": smallRun("0.11", 1),
		"0.20.txt": smallRun("0.20", 1), "0.32.txt": smallRun("0.32", 1),
		"0.11-servers-2.txt": smallRun("0.11", 2),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", "golden", name)
			got := string(b.Append(nil, 300*time.Millisecond))
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("the page is another one; if that is meant, run with -update (-want +got):\n%s", d)
			}
		})
	}
}
