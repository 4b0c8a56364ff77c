//go:build !linux

package machinepeak

import (
	"runtime"
	"time"
)

// On other systems threads are not bound, and the CPU's name, caches, free memory and
// thread times are unknown.

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

func bind(int) {}

func threadTime() time.Duration { return -1 }

func pages(size int) (b []byte, release func(), err error) {
	b = make([]byte, size)
	touch(b)
	return b, func() {}, nil
}

func lastCache() int { return 0 }

func freeMemory() int { return 0 }
