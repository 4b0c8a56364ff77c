package page

import (
	"math"
	"strconv"
	"time"
)

// idleFDs is the number of open files of a real API server without clients; each connection adds one.
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

// Values of an API server of vLLM 0.32.0 after its start.
const (
	virtualBytes  = 4794564608
	residentBytes = 939163648
	maxFDs        = 65535
)

// Python version of vLLM's container image of 0.30.0.
const (
	pythonVersion = "3.12.14"
	pythonPatch   = "14"
	pythonMinor   = "12"
)

func (p *process) write(w *builder) {
	for _, f := range []struct {
		name, help string
		values     [3]float64
	}{
		{"python_gc_objects_collected_total", "Objects collected during gc", [3]float64{16335, 2249, 701}},
		{"python_gc_objects_uncollectable_total", "Uncollectable objects found during GC", [3]float64{}},
		{"python_gc_collections_total", "Number of times this generation was collected", [3]float64{1591, 145, 10}},
	} {
		w.head(f.name, f.help, counter)
		for generation, v := range f.values {
			w.constant(v, f.name, label{"generation", strconv.Itoa(generation)})
		}
	}
	w.head("python_info", "Python platform information", gauge)
	w.constant(1, "python_info", label{"implementation", "CPython"}, label{"major", "3"},
		label{"minor", pythonMinor}, label{"patchlevel", pythonPatch}, label{"version", pythonVersion})
	for _, f := range []struct {
		name, help string
		kind       kind
		value      float64
		open       *float64 // a number that changes
	}{
		{"process_virtual_memory_bytes", "Virtual memory size in bytes.", gauge, virtualBytes, nil},
		{"process_resident_memory_bytes", "Resident memory size in bytes.", gauge, residentBytes, nil},
		{"process_start_time_seconds", "Start time of the process since unix epoch in seconds.", gauge, p.startTime, nil},
		{"process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", counter, 0, &p.cpuSeconds},
		{"process_open_fds", "Number of open file descriptors.", gauge, 0, &p.openFDs},
		{"process_max_fds", "Maximum number of open file descriptors.", gauge, maxFDs, nil},
	} {
		w.head(f.name, f.help, f.kind)
		if f.open != nil {
			w.sample(f.open, formValue, f.name)
		} else {
			w.constant(f.value, f.name)
		}
	}
}
