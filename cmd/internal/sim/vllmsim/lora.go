package vllmsim

import (
	"strconv"
	"strings"
	"time"
)

// adapterSeries is one series of lora_requests_info: a combination of adapters and the time at which it was
// last seen.
type adapterSeries struct {
	names string
	seen  *float64 // Unix time
}

// Adapters sets the LoRA adapters of the running requests; now is the time since the start. The value of
// the family is that time, earlier combinations stay on the page, and each adapter is under both
// labels, as vLLM learns of a request with its first token (vLLM v1/metrics/loggers.py, stats.py).
func (b *Book) Adapters(now time.Duration, list []string) {
	at, names := unix(b.start.Add(now)), strings.Join(list, ",")
	for i := range b.adapters {
		if a := &b.adapters[i]; a.names == names {
			*a.seen = at
			return
		}
	}
	b.adapters = append(b.adapters, adapterSeries{names: names, seen: &at})
	b.stale = true
}

// lora writes lora_requests_info, which a server has only with --enable-lora.
func (b *Book) lora(w *builder) {
	if !b.settings.LoRA {
		return
	}
	const name = "vllm:lora_requests_info"
	w.head(name, "Running stats on lora requests.", gauge)
	for _, a := range b.adapters {
		w.sample(a.seen, formValue, name,
			label{"max_lora", strconv.Itoa(b.settings.MaxLoras)},
			label{"running_lora_adapters", a.names},
			label{"waiting_lora_adapters", a.names})
	}
}
