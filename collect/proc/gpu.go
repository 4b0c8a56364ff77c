package proc

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// GPUHints is what a server's processes tell of the GPUs they use. In a
// container the driver's PIDs are the host's or absent, and the other fields
// have to do.
type GPUHints struct {
	PIDs       []int  // of the process tree, as this machine numbers them
	Visible    string // value of CUDA_VISIBLE_DEVICES, or of its like on ROCm
	VisibleSet bool   // whether it is set: set and empty hides every GPU
	Minors     []int  // N of each /dev/nvidiaN that the tree has open, ascending
}

// GPUHints reads the descriptors of the server's processes and its environment.
func (s *Server) GPUHints() GPUHints {
	var h GPUHints
	for _, p := range s.Tree {
		h.PIDs = append(h.PIDs, p.PID)
		h.Minors = append(h.Minors, s.fs.minors(p.PID)...)
	}
	slices.Sort(h.Minors)
	h.Minors = slices.Compact(h.Minors)
	for _, name := range []string{"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"} {
		if value, ok := s.Env[name]; ok {
			h.Visible, h.VisibleSet = value, true
			break
		}
	}
	return h
}

// minors lists the GPUs whose device files a process has open.
func (f FS) minors(pid int) []int {
	dir := f.path(pid, "fd")
	names, err := readDir(dir)
	if err != nil {
		return nil
	}
	var minors []int
	for _, name := range names {
		target, err := os.Readlink(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		if digits, ok := strings.CutPrefix(target, "/dev/nvidia"); ok {
			if n, err := strconv.Atoi(digits); err == nil {
				minors = append(minors, n)
			}
		}
	}
	return minors
}
