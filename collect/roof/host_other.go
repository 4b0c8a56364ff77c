//go:build !linux

package roof

import (
	"runtime"
	"time"
)

// Other systems bind no threads, and tell neither the name of the CPU, caches, free
// memory nor the time of a thread here.

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
