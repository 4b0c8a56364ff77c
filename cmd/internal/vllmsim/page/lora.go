package page

import (
	"strconv"
	"strings"
	"time"
)

// adapterSeries is one series of lora_requests_info: a combination of adapters
// and when it was last seen.
type adapterSeries struct {
	running, waiting string
	seen             *float64 // Unix time
}

// Adapters tells which LoRA adapters run and wait, in the order in which they
// came; now is the time since start. The family counts nothing: its value is the
// time, and combinations of the past stay on the page (vLLM v1/metrics/loggers.py).
func (b *Book) Adapters(now time.Duration, running, waiting []string) {
	at := unix(b.start.Add(now))
	r, q := strings.Join(running, ","), strings.Join(waiting, ",")
	for i := range b.adapters {
		if a := &b.adapters[i]; a.running == r && a.waiting == q {
			*a.seen = at
			return
		}
	}
	b.adapters = append(b.adapters, adapterSeries{running: r, waiting: q, seen: &at})
	b.stale = true
}

// lora writes lora_requests_info, which a server has only with --enable-lora.
func (b *Book) lora(w *builder) {
	if !b.settings.LoRA {
		return
	}
	const name = "vllm:lora_requests_info"
	w.head(name, "Running stats on lora requests.", gauge.String())
	for _, a := range b.adapters {
		w.sample(a.seen, formValue, name,
			label{"max_lora", strconv.Itoa(b.settings.MaxLoras)},
			label{"running_lora_adapters", a.running},
			label{"waiting_lora_adapters", a.waiting})
	}
}
