package tracing

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// allowedCPUs returns the CPUs that this process may use.
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
	return cpus, nil
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
