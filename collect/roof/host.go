package roof

import (
	"fmt"
	"slices"
	"strings"
)

// Host is the machine that a roof is of, as far as that decides about it.
type Host struct {
	// CPU is the CPU's model name as the kernel has it; where it has none (arm64), the
	// name of the board, or the codes of the core: "arm64 0x41 0xd40". "" unknown.
	CPU string `json:"cpu"`
	// CPUs are those that this process may use, as the kernel lists them: "0-3,8".
	CPUs string `json:"cpus"`
	// Count is how many they are, Cores of how many cores, Sockets of how many packages;
	// 0 unknown.
	Count   int `json:"-"`
	Cores   int `json:"-"`
	Sockets int `json:"-"`
}

// Here is this machine. An error says that the CPUs cannot be told.
func Here() (Host, error) {
	cpus, err := allowedCPUs()
	if err != nil {
		return Host{}, fmt.Errorf("the CPUs of this process: %w", err)
	}
	return Host{CPU: cpuName(), CPUs: cpuList(cpus), Count: len(cpus), Cores: distinct(cpus, siblingsOf), Sockets: distinct(cpus, packageOf)}, nil
}

// cpuList writes CPUs as the kernel does.
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

// distinct is in how many cores or packages CPUs lie, 0 where it is not known of one.
func distinct(cpus []int, of func(int) string) int {
	var seen []string
	for _, c := range cpus {
		p := of(c)
		if p == "" {
			return 0
		}
		if !slices.Contains(seen, p) {
			seen = append(seen, p)
		}
	}
	return len(seen)
}

// nameIn is the CPU's name in the text of /proc/cpuinfo, "" none; codes are those of the
// first core where it has them instead.
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
