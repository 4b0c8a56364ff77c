package capture

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// program has the values of one process: each list has one value per sample, 500 ms apart, the last
// one for all further samples.
type program struct {
	rss     float64 // MiB
	threads int
	cpu     []float64 // milliseconds so far
	reaped  []float64 // the same of children
}

func (p program) tree() Tree {
	at := func(list []float64, k int) float64 {
		if len(list) == 0 {
			return 0
		}
		return list[min(k, len(list)-1)]
	}
	t := Tree{Root: 2252, Processes: []Process{{PID: 2252, Comm: "it"}}}
	for k := range 6 {
		t.Samples = append(t.Samples, TreeSample{At: time.Duration(k) * 500 * time.Millisecond, Walked: true, Processes: []ProcessSample{{
			CPU: time.Duration(at(p.cpu, k) * float64(time.Millisecond)), Reaped: time.Duration(at(p.reaped, k) * float64(time.Millisecond)),
			RSSBytes: int64(p.rss * (1 << 20)), Threads: p.threads,
		}}})
	}
	return t
}

// TestIdlePID checks the warning with recorded processes: wrappers that wait, and ordinary programs
// that are sometimes busy.
func TestIdlePID(t *testing.T) {
	tests := []struct {
		name string
		p    program
		want bool
	}{
		{"the seed's wrapper on an L4", program{rss: 2.1, threads: 1}, true},
		{"the seed's wrapper on an H100", program{rss: 2.25, threads: 1, cpu: []float64{4}}, true},
		{"sleep infinity", program{rss: 1.7, threads: 1, cpu: []float64{1}}, true},
		{"an init of a container", program{rss: 0.7, threads: 1, cpu: []float64{20}, reaped: []float64{40}}, true},
		{"a process that is dead and not waited for", program{}, true},

		{"the seed's llama-server", program{rss: 511, threads: 52, cpu: []float64{0, 365, 730}}, false},
		{"llama-server that rests", program{rss: 511, threads: 52}, false},
		{"a small server that rests with its pool", program{rss: 3, threads: 4}, false},
		{"a single-threaded interpreter that rests", program{rss: 14, threads: 1}, false},
		{"awk on a pipe", program{rss: 3, threads: 1, cpu: []float64{0, 0, 3, 3, 3, 5}}, false},
		{"dd", program{rss: 1.8, threads: 1, cpu: []float64{0, 0.4}}, false},
		{"gzip", program{rss: 2, threads: 1, cpu: []float64{0, 0, 0, 0, 0, 80}}, false},
		{"sort that waits for input, and stirs once", program{rss: 2.6, threads: 1, cpu: []float64{1, 1, 1, 1.02}}, false},
		{"a shell loop whose children do the work", program{rss: 3.4, threads: 1, reaped: []float64{0, 10}}, false},
		{"a mail server that wakes once", program{rss: 8, threads: 1, cpu: []float64{700, 700, 700.2}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := Capture{Tree: tt.p.tree()}
			got := processWarnings(&c)
			if fired := len(got) == 1 && got[0].ID == "idle-pid"; fired != tt.want || !tt.want && len(got) > 0 {
				t.Errorf("warnings %v; fired: want %v", got, tt.want)
			}
			if tt.want && !strings.Contains(got[0].Text, "pgrep -x NAME") {
				t.Errorf("%q does not say how to find the right PID", got[0].Text)
			}
		})
	}
}

func TestProcessWarnings(t *testing.T) {
	idle := program{rss: 2, threads: 1}
	sluggish := program{rss: 900, threads: 80, cpu: []float64{0, 1, 2, 3, 4, 5}}
	busy := program{rss: 500, threads: 52, cpu: []float64{0, 300, 600, 900, 1200, 1500}}
	chunks := []Request{{Chunks: make([]Chunk, 80)}}
	counter := func(tokens ...float64) (pages []PageSample) { // one look in 500 ms
		for k, n := range tokens {
			pages = append(pages, PageSample{At: time.Duration(k) * 500 * time.Millisecond, GenerationTokens: stat.Some(n)})
		}
		return pages
	}
	page := counter(1000, 1016, 1032, 1048, 1064, 1080)
	// 7.5 ms of work in 2.5 s, all of it while the ten tokens were generated.
	once := program{rss: 900, threads: 80, cpu: []float64{0.5, 0.5, 0.5, 8, 8.001, 8.001}}
	ticks := program{rss: 900, threads: 80, cpu: []float64{700, 700, 700, 700, 710, 710}}
	var device engine.GPU
	device.Fields[engine.GPUUtil] = stat.Some(0.83)
	gpu := GPUs{Readings: []engine.GPUReading{{Devices: []engine.GPU{device}}}}
	outside := Listener{PID: 2254, Comm: "llama-server", Port: 8080}
	inside := Listener{PID: 2252, Comm: "it", Port: 8080}
	tests := []struct {
		name     string
		p        program
		listener Listener
		c        Capture
		want     string // ID, "" none
		says     []string
	}{
		{"a wrapper beside the server", idle, outside, Capture{Requests: chunks}, "idle-pid", []string{"2252", "process 2254 (llama-server) listens on the port 8080", "--pid 2254", "VmRSS|Threads"}},
		{"a large program that is not the server", sluggish, outside, Capture{Requests: chunks, GPUs: gpu}, "wrong-tree", []string{"this is not the serving process", "process 2254 (llama-server) listens", "80 tokens", "GPU was up to 83"}},
		{"the same, tokens by the server's counter", sluggish, outside, Capture{Pages: page}, "wrong-tree", []string{"80 tokens"}},
		{"the listener is unknown", sluggish, Listener{}, Capture{Requests: chunks}, "wrong-tree", []string{"this is not the serving process", "pgrep -x NAME"}},
		{"a server that rested but for one answer", once, Listener{}, Capture{Pages: counter(50, 50, 50, 60, 60, 60)}, "", nil},
		{"its CPU time is known in ticks", ticks, Listener{}, Capture{Requests: chunks}, "", nil},
		{"the listener is unknown, and nothing was served", sluggish, Listener{}, Capture{}, "", nil},
		{"a worker, while the listener is outside", busy, outside, Capture{Requests: chunks}, "part-of-server", []string{"a part of the server", "2254"}},
		{"another program, and no traffic", sluggish, outside, Capture{}, "part-of-server", []string{"2254"}},
		{"the server", busy, inside, Capture{Requests: chunks, GPUs: gpu}, "", nil},
		{"the server at rest", sluggish, inside, Capture{}, "", nil},
		{"the server, and the listener is unknown", busy, Listener{}, Capture{Requests: chunks}, "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.c.Tree, tt.c.End = tt.p.tree(), 2500*time.Millisecond
			tt.c.Tree.Listener = tt.listener
			got := processWarnings(&tt.c)
			id, text := "", ""
			if len(got) > 0 {
				id, text = got[0].ID, got[0].Text
			}
			if id != tt.want || len(got) > 1 {
				t.Fatalf("warnings %v, want %q", got, tt.want)
			}
			for _, part := range tt.says {
				if !strings.Contains(text, part) {
					t.Errorf("%q does not say %q", text, part)
				}
			}
		})
	}
}
