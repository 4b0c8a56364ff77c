package machinepeak

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// allowedCPUs returns the CPUs that this process may use, in the order of [coresFirst].
func allowedCPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, err
	}
	var cpus []int
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	if len(cpus) == 0 {
		return nil, fmt.Errorf("sched_getaffinity names none")
	}
	return coresFirst(cpus, siblingsOf), nil
}

// coresFirst moves CPUs that share a core with an earlier one to the end. A scheduler
// fills cores in the same order, and two hyperthreads compute little more than one.
func coresFirst(cpus []int, siblings func(int) string) []int {
	var first, rest []int
	var seen []string
	for _, c := range cpus {
		core := siblings(c)
		if core != "" && slices.Contains(seen, core) {
			rest = append(rest, c)
			continue
		}
		seen = append(seen, core)
		first = append(first, c)
	}
	return append(first, rest...)
}

// siblingsOf returns the kernel's list of the CPUs of a CPU's core; "" if unknown.
func siblingsOf(cpu int) string { return topology(cpu, "thread_siblings_list") }

// packageOf returns the ID of a CPU's package; "" if unknown.
func packageOf(cpu int) string { return topology(cpu, "physical_package_id") }

func topology(cpu int, file string) string {
	b, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/%s", cpu, file))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// cpuName returns the name of the CPU, else of its board, else the codes of the core; ""
// if unknown.
func cpuName() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	name, codes := nameIn(string(info))
	if name != "" {
		return name
	}
	if board, err := os.ReadFile("/proc/device-tree/model"); err == nil {
		if name := strings.Trim(string(board), "\x00 \n"); name != "" {
			return name
		}
	}
	if codes == "" {
		return ""
	}
	return runtime.GOARCH + " " + codes
}

// bind binds the calling thread to a CPU. It ignores errors: an unbound thread is a little
// slower at most.
func bind(cpu int) {
	var set unix.CPUSet
	set.Set(cpu)
	_ = unix.SchedSetaffinity(0, &set)
}

// threadTime returns the CPU time of the calling thread, negative if unknown.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return -1
	}
	return time.Duration(t.Nano())
}

// pages returns zeroed memory whose pages are all mapped. It asks for huge pages, so that
// TLB misses do not lower the measured memory rate.
func pages(size int) (b []byte, release func(), err error) {
	b, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, fmt.Errorf("%d MiB to read: %w", size>>20, err)
	}
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	touch(b)
	return b, func() { _ = unix.Munmap(b) }, nil
}

// lastCache returns the size of the largest cache in bytes, 0 if unknown.
func lastCache() int {
	most := 0
	names, _ := filepath.Glob("/sys/devices/system/cpu/cpu0/cache/index*/size")
	for _, name := range names {
		if b, err := os.ReadFile(name); err == nil {
			most = max(most, cacheSize(string(b)))
		}
	}
	return most
}

// cacheSize parses a size in the kernel's format, "32768K", and returns bytes; 0 if it is
// invalid.
func cacheSize(text string) int {
	text = strings.TrimSpace(text)
	unit := 1
	for suffix, factor := range map[string]int{"K": 1 << 10, "M": 1 << 20} {
		if rest, ok := strings.CutSuffix(text, suffix); ok {
			text, unit = rest, factor
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxBuffer {
		return 0
	}
	return n * unit
}

// freeMemory returns the available memory in bytes (MemAvailable); 0 if unknown.
func freeMemory() int {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	return available(string(b))
}

func available(meminfo string) int {
	for line := range strings.Lines(meminfo) {
		rest, ok := strings.CutPrefix(line, "MemAvailable:")
		if !ok {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
		if err != nil || n < 0 {
			return 0
		}
		return n << 10
	}
	return 0
}
