//go:build !linux

package tracing

import (
	"runtime"
)

// On other systems the CPU's name, cores and packages are unknown.

func allowedCPUs() ([]int, error) {
	cpus := make([]int, runtime.NumCPU())
	for i := range cpus {
		cpus[i] = i
	}
	return cpus, nil
}

func siblingsOf(int) string { return "" }

func packageOf(int) string { return "" }

func cpuName() string { return "" }
