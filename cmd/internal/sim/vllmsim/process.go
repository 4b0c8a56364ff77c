package vllmsim

import (
	"math"
	"time"
)

// process holds the families of the API server's process that rooftop reads.
type process struct {
	startTime, cpuSeconds float64
	cpu                   time.Duration
}

func (p *process) init(start time.Time) {
	// The kernel keeps the start in ticks of 10 ms.
	p.startTime = math.Floor(unix(start)*100) / 100
}

func (p *process) spend(d time.Duration) {
	p.cpu += d
	p.cpuSeconds = float64(p.cpu/(10*time.Millisecond)) / 100
}

func (p *process) write(w *builder) {
	w.head("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", gauge)
	w.constant(p.startTime, "process_start_time_seconds")
	w.head("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", counter)
	w.sample(&p.cpuSeconds, formValue, "process_cpu_seconds_total")
}
