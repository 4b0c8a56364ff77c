package roof

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

// allowedCPUs are the CPUs that this process may use, one of each core first.
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

// coresFirst orders CPUs so that those which share a core with an earlier one come
// last: a scheduler does the same, and two halves of a core compute little more than
// one.
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

// siblingsOf are the CPUs of a CPU's core, in the kernel's words; "" unknown.
func siblingsOf(cpu int) string {
	b, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// packageOf is the package that a CPU lies in, "" unknown.
func packageOf(cpu int) string {
	b, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// cpuName is the name of the CPU, or of the board that it is on.
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

// bind keeps the calling thread on a CPU. Where that is refused it stays where the
// scheduler puts it: the rates are then a little lower at most.
func bind(cpu int) {
	var set unix.CPUSet
	set.Set(cpu)
	_ = unix.SchedSetaffinity(0, &set)
}

// threadTime is how long the calling thread has had a CPU, negative unknown.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return -1
	}
	return time.Duration(t.Nano())
}

// pages returns memory that is mapped and filled with zeros, in large pages where the
// kernel gives them: misses of the page table are not the memory's rate.
func pages(size int) (b []byte, release func(), err error) {
	b, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, fmt.Errorf("%d MiB to read: %w", size>>20, err)
	}
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	touch(b)
	return b, func() { _ = unix.Munmap(b) }, nil
}

// lastCache is the size of the largest cache in bytes, 0 unknown.
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

// cacheSize reads a size as the kernel writes it, "32768K"; 0 where it is none.
func cacheSize(text string) int {
	text = strings.TrimSpace(text)
	unit := 1
	for suffix, factor := range map[string]int{"K": 1 << 10, "M": 1 << 20} {
		if rest, ok := strings.CutSuffix(text, suffix); ok {
			text, unit = rest, factor
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > mostBuffer {
		return 0
	}
	return n * unit
}

// freeMemory is what the machine can give away, in bytes (MemAvailable); 0 unknown.
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
