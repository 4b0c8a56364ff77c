package page

import (
	"math"
	"time"
)

// idleFDs are the open files of a real API server without a client; each
// connection is one more.
const idleFDs = 34

// process holds the families that prometheus_client adds for the process of the
// API server and its Python.
type process struct {
	startTime, cpuSeconds, openFDs float64
	cpu                            time.Duration
}

func (p *process) init(start time.Time) {
	// The kernel keeps the start in ticks of 10 ms.
	p.startTime = math.Floor(unix(start)*100) / 100
	p.openFDs = idleFDs
}

func (p *process) spend(d time.Duration) {
	p.cpu += d
	p.cpuSeconds = float64(p.cpu/(10*time.Millisecond)) / 100
}

// Of an API server of vLLM 0.32.0 after its start.
const (
	virtualBytes  = 4794564608
	residentBytes = 939163648
	maxFDs        = 65535
)

// The Python of vLLM's container image of 0.30.0.
const (
	pythonVersion = "3.12.14"
	pythonPatch   = "14"
	pythonMinor   = "12"
)

func (p *process) write(w *builder) {
	generations := []string{"0", "1", "2"} // of the garbage collector
	for _, f := range []struct {
		name, help string
		values     [3]float64
	}{
		{"python_gc_objects_collected_total", "Objects collected during gc", [3]float64{16335, 2249, 701}},
		{"python_gc_objects_uncollectable_total", "Uncollectable objects found during GC", [3]float64{}},
		{"python_gc_collections_total", "Number of times this generation was collected", [3]float64{1591, 145, 10}},
	} {
		w.head(f.name, f.help, counter.String())
		for i, g := range generations {
			w.constant(f.values[i], f.name, label{"generation", g})
		}
	}
	w.head("python_info", "Python platform information", gauge.String())
	w.constant(1, "python_info", label{"implementation", "CPython"}, label{"major", "3"},
		label{"minor", pythonMinor}, label{"patchlevel", pythonPatch}, label{"version", pythonVersion})

	w.head("process_virtual_memory_bytes", "Virtual memory size in bytes.", gauge.String())
	w.constant(virtualBytes, "process_virtual_memory_bytes")
	w.head("process_resident_memory_bytes", "Resident memory size in bytes.", gauge.String())
	w.constant(residentBytes, "process_resident_memory_bytes")
	w.head("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", gauge.String())
	w.constant(p.startTime, "process_start_time_seconds")
	w.head("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", counter.String())
	w.sample(&p.cpuSeconds, formValue, "process_cpu_seconds_total")
	w.head("process_open_fds", "Number of open file descriptors.", gauge.String())
	w.sample(&p.openFDs, formValue, "process_open_fds")
	w.head("process_max_fds", "Maximum number of open file descriptors.", gauge.String())
	w.constant(maxFDs, "process_max_fds")
}
