package gpu

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/collect"
)

// Selection is the set of a machine's GPUs that a server uses.
type Selection struct {
	Positions []int  // in the list of devices, ascending; empty if the server uses no GPU
	How       string // the evidence for the selection, shown to the user
	// Assumed is true if nothing distinguishes the server's GPUs from those of other
	// processes, so that the selection may contain more than the server's.
	Assumed bool
}

// Select finds the server's devices by the first evidence that applies: the driver's
// process list (by device UUID) joined with the server's PIDs, CUDA_VISIBLE_DEVICES, or
// the device files that the server has open. Without evidence it selects all devices.
// The process list does not help in a container, where the driver's PIDs are the
// host's or absent.
func Select(devices []Device, processes map[string][]int, h collect.GPUHints) Selection {
	if len(devices) == 0 {
		return Selection{How: "no GPU is readable"}
	}
	if s, ok := byProcess(devices, processes, h.PIDs); ok {
		return s
	}
	if h.VisibleSet {
		return byVisible(devices, cmp.Or(h.VisibleName, "CUDA_VISIBLE_DEVICES"), h.Visible)
	}
	if s, ok := byMinor(devices, h.Minors); ok {
		return s
	}
	if s, ok := byRender(devices, h.Renders); ok {
		return s
	}
	return allDevices(devices, len(h.PIDs) > 0)
}

// allDevices returns the selection without any evidence. If the server's processes are
// known and none of them shows a GPU, the server may also run without one.
func allDevices(devices []Device, processesKnown bool) Selection {
	const untied = "neither the driver's process list, CUDA_VISIBLE_DEVICES nor open device files"
	all := Selection{Positions: positionsWhere(devices, func(d Device) bool { return !d.Integrated })}
	switch {
	case len(all.Positions) == 0:
		// Most desktop processors have an integrated GPU, and almost no server uses it.
		all.How = "the only GPU here is part of a processor, and " + untied + " tie the server to it"
	case len(all.Positions) > 1:
		all.Assumed = true
		all.How = fmt.Sprintf("all %d GPUs: %s identify the server's", len(all.Positions), untied)
	case processesKnown:
		all.Assumed = true
		all.How = "the only GPU of this machine, though " + untied + " tie the server to it"
	default:
		all.How = "the only GPU of this machine"
	}
	return all
}

func positionsWhere(devices []Device, is func(Device) bool) []int {
	positions := []int{}
	for i, d := range devices {
		if is(d) {
			positions = append(positions, i)
		}
	}
	return positions
}

func byProcess(devices []Device, processes map[string][]int, tree []int) (Selection, bool) {
	positions := positionsWhere(devices, func(d Device) bool {
		return slices.ContainsFunc(processes[d.UUID], func(pid int) bool { return slices.Contains(tree, pid) })
	})
	return Selection{Positions: positions, How: "the driver's process list"}, len(positions) > 0
}

func byMinor(devices []Device, minors []int) (Selection, bool) {
	positions := positionsWhere(devices, func(d Device) bool { return d.Minor >= 0 && slices.Contains(minors, d.Minor) })
	s := Selection{Positions: positions, How: "the /dev/nvidia* files that the server holds open"}
	if slices.ContainsFunc(positions, func(i int) bool { return devices[i].MIG() }) && len(positions) > 1 {
		// All slices of a GPU share its device file.
		s.Assumed = true
	}
	return s, len(positions) > 0
}

// byRender selects AMD GPUs by open device files. ROCm opens the file of every GPU that it
// may use, so a selection of several may contain more than the server's. Integrated GPUs
// are opened with the others and count only if there is no other.
func byRender(devices []Device, renders []int) (Selection, bool) {
	open := func(d Device) bool { return d.Render > 0 && slices.Contains(renders, d.Render) }
	positions := positionsWhere(devices, func(d Device) bool { return open(d) && !d.Integrated })
	if len(positions) == 0 {
		positions = positionsWhere(devices, open)
	}
	s := Selection{Positions: positions, How: "the /dev/dri/render* files that the server holds open", Assumed: len(positions) > 1}
	return s, len(positions) > 0
}

// byVisible interprets a CUDA_VISIBLE_DEVICES value as the CUDA runtime does: the
// list ends at the first entry that names no device, a UUID may be abbreviated as
// long as it is unique, and a device named twice hides every device.
func byVisible(devices []Device, name, value string) Selection {
	s := Selection{Positions: []int{}, How: name + "=" + value}
	if strings.TrimSpace(value) == "" {
		s.How = name + " is set and empty, so it shows no GPU"
		return s
	}
	for entry := range strings.SplitSeq(value, ",") {
		i, ok := visibleDevice(devices, strings.TrimSpace(entry))
		if !ok {
			break
		}
		if slices.Contains(s.Positions, i) {
			s.Positions = []int{}
			s.How += " names a device twice, so it shows no GPU"
			return s
		}
		s.Positions = append(s.Positions, i)
	}
	slices.Sort(s.Positions)
	if len(s.Positions) == 0 {
		s.How += ": no GPU of that name here"
	}
	return s
}

// visibleDevice finds the device that one entry names. Numbers count GPUs in PCI bus order,
// which is also CUDA's order unless the models differ. CUDA shows only the first slice of a GPU
// in MIG mode.
func visibleDevice(devices []Device, entry string) (int, bool) {
	if n, err := strconv.Atoi(entry); err == nil {
		return nthGPU(devices, n)
	}
	if !strings.HasPrefix(entry, "GPU-") && !strings.HasPrefix(entry, "MIG-") {
		return 0, false
	}
	matches := positionsWhere(devices, func(d Device) bool { return strings.HasPrefix(d.UUID, entry) })
	if len(matches) == 1 {
		return matches[0], true
	}
	// The entry may name a GPU in MIG mode, of which devices has only the slices.
	parts := positionsWhere(devices, func(d Device) bool { return strings.HasPrefix(d.Parent, entry) })
	if len(matches) == 0 && len(parts) > 0 && oneParent(devices, parts) {
		return parts[0], true
	}
	return 0, false
}

func oneParent(devices []Device, positions []int) bool {
	first := devices[positions[0]].Parent
	return !slices.ContainsFunc(positions, func(i int) bool { return devices[i].Parent != first })
}

// nthGPU returns the position of the first device of the n-th GPU, counted from 0.
func nthGPU(devices []Device, n int) (int, bool) {
	if n < 0 {
		return 0, false
	}
	var seen []int
	for i, d := range devices {
		if slices.Contains(seen, d.Index) {
			continue
		}
		if len(seen) == n {
			return i, true
		}
		seen = append(seen, d.Index)
	}
	return 0, false
}
