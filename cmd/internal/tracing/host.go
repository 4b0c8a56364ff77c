package tracing

import (
	"fmt"
	"slices"
	"strings"
)

// host describes a machine, as far as its peak depends on it.
type host struct {
	// cpu is the CPU's model name as the kernel reports it; without one (arm64), the name
	// of the board or the codes of the core: "arm64 0x41 0xd40". "" if unknown.
	cpu string
	// cores is the number of cores of the CPUs that this process may use, and sockets that of
	// their packages; 0 if unknown.
	cores, sockets int
}

// thisMachine describes the machine that rooftop runs on. It fails if the CPUs of this process
// cannot be read.
func thisMachine() (host, error) {
	cpus, err := allowedCPUs()
	if err != nil {
		return host{}, fmt.Errorf("the CPUs of this process: %w", err)
	}
	return host{cpu: cpuName(), cores: distinct(cpus, siblingsOf), sockets: distinct(cpus, packageOf)}, nil
}

// distinct returns the number of different values of key over CPUs, 0 if key returns ""
// for any of them.
func distinct(cpus []int, key func(int) string) int {
	var seen []string
	for _, c := range cpus {
		p := key(c)
		if p == "" {
			return 0
		}
		if !slices.Contains(seen, p) {
			seen = append(seen, p)
		}
	}
	return len(seen)
}

// nameIn returns the CPU's model name in the text of /proc/cpuinfo. Without a name it
// returns the implementer and part codes of the first core instead, "0x41 0xd40".
func nameIn(cpuinfo string) (name, codes string) {
	var implementer, part string
	for line := range strings.Lines(cpuinfo) {
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "model name":
			return value, ""
		case "CPU implementer":
			implementer = value
		case "CPU part":
			if part == "" {
				part = value
			}
		}
	}
	if implementer == "" || part == "" {
		return "", ""
	}
	return "", implementer + " " + part
}
