package machinepeak

import (
	"fmt"
	"slices"
	"strings"
)

// Host describes the measured machine, as far as its peak depends on it.
type Host struct {
	// CPU is the CPU's model name as the kernel reports it; without one (arm64), the name
	// of the board or the codes of the core: "arm64 0x41 0xd40". "" if unknown.
	CPU string `json:"cpu"`
	// CPUs are the CPUs that this process may use, in the kernel's format: "0-3,8".
	CPUs string `json:"cpus"`
	// Count is the number of these CPUs, Cores of their cores and Sockets of their
	// packages; 0 if unknown.
	Count   int `json:"-"`
	Cores   int `json:"-"`
	Sockets int `json:"-"`
}

// Here returns a description of this machine. It fails if the CPUs of this process cannot
// be read.
func Here() (Host, error) {
	cpus, err := allowedCPUs()
	if err != nil {
		return Host{}, fmt.Errorf("the CPUs of this process: %w", err)
	}
	return Host{CPU: cpuName(), CPUs: cpuList(cpus), Count: len(cpus), Cores: distinct(cpus, siblingsOf), Sockets: distinct(cpus, packageOf)}, nil
}

// cpuList formats CPUs in the kernel's format: "0-3,8".
func cpuList(cpus []int) string {
	cpus = slices.Clone(cpus)
	slices.Sort(cpus)
	var parts []string
	for i := 0; i < len(cpus); {
		last := i
		for last+1 < len(cpus) && cpus[last+1] == cpus[last]+1 {
			last++
		}
		if last == i {
			parts = append(parts, fmt.Sprint(cpus[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", cpus[i], cpus[last]))
		}
		i = last + 1
	}
	return strings.Join(parts, ",")
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
