package proc

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/launch"
)

// GPUHints is what a server's processes tell of the GPUs they use. In a
// container the driver's PIDs are the host's or absent, and the other fields
// have to do.
type GPUHints struct {
	PIDs       []int  // of the process tree, as this machine numbers them
	Visible    string // value of CUDA_VISIBLE_DEVICES, or of its like on ROCm
	VisibleSet bool   // whether it is set: set and empty hides every GPU
	Minors     []int  // N of each /dev/nvidiaN that the tree has open, ascending
	// VisibleName is the variable that Visible is of, "" none.
	VisibleName string
	Renders     []int // N of each /dev/dri/renderDN that the tree has open, ascending
}

// GPUHints reads the descriptors of the server's processes and its environment.
func (s *Server) GPUHints() GPUHints {
	h := s.fs.gpuFiles(s.Tree)
	h.see(s.Env)
	return h
}

// GPUHints reads the descriptors and environments of a process and its descendants,
// whatever they serve. Of several that say which GPUs they see, the topmost counts
// that is no wrapper: a shell may give its child others than it has itself.
func (f FS) GPUHints(root int) GPUHints {
	tree, err := f.Tree(root)
	if err != nil {
		return GPUHints{}
	}
	h := f.gpuFiles(tree)
	f.Roles(tree, 0)
	for _, p := range tree {
		if p.Role == Launcher {
			continue
		}
		if env, err := f.environ(p.PID); err == nil && h.see(launch.Environ(env)) {
			break
		}
	}
	return h
}

// gpuFiles lists the processes and the device files that they have open.
func (f FS) gpuFiles(tree []Process) GPUHints {
	var h GPUHints
	for _, p := range tree {
		h.PIDs = append(h.PIDs, p.PID)
		minors, renders := f.deviceFiles(p.PID)
		h.Minors, h.Renders = append(h.Minors, minors...), append(h.Renders, renders...)
	}
	slices.Sort(h.Minors)
	h.Minors = slices.Compact(h.Minors)
	slices.Sort(h.Renders)
	h.Renders = slices.Compact(h.Renders)
	return h
}

// see takes in what an environment says of the GPUs to use; false where it says
// nothing.
func (h *GPUHints) see(env map[string]string) bool {
	for _, name := range []string{"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"} {
		if value, ok := env[name]; ok {
			h.Visible, h.VisibleSet, h.VisibleName = value, true, name
			return true
		}
	}
	return false
}

// deviceFiles lists the GPUs whose device files a process has open: NVIDIA's by
// N of /dev/nvidiaN, others by N of /dev/dri/renderDN.
func (f FS) deviceFiles(pid int) (minors, renders []int) {
	dir := f.path(pid, "fd")
	names, err := readDir(dir)
	if err != nil {
		return nil, nil
	}
	for _, name := range names {
		target, err := os.Readlink(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		minors = appendNumber(minors, target, "/dev/nvidia")
		renders = appendNumber(renders, target, "/dev/dri/renderD")
	}
	return minors, renders
}

// appendNumber appends what follows the prefix, where that is a number.
func appendNumber(numbers []int, text, prefix string) []int {
	digits, ok := strings.CutPrefix(text, prefix)
	if !ok {
		return numbers
	}
	if n, err := strconv.Atoi(digits); err == nil {
		numbers = append(numbers, n)
	}
	return numbers
}
