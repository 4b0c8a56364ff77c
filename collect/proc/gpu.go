package proc

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// GPUHints reads the descriptors of the server's processes and its environment.
func (s *Server) GPUHints() collect.GPUHints {
	h := s.fs.gpuFiles(s.Tree)
	readVisibility(&h, s.Env)
	return h
}

// GPUHints reads the descriptors and environments of a process and its descendants, of
// any engine. It takes the visible GPUs from the topmost process that sets them and is
// not a wrapper, because a shell may give its child other GPUs than its own.
func (f processes) GPUHints(root int) collect.GPUHints {
	tree, err := f.Tree(root)
	if err != nil {
		return collect.GPUHints{}
	}
	h := f.gpuFiles(tree)
	f.Roles(tree, 0)
	for _, p := range tree {
		if p.Role == Launcher {
			continue
		}
		if env, err := f.Environ(p.PID); err == nil && readVisibility(&h, launch.Environ(env)) {
			break
		}
	}
	return h
}

// gpuFiles returns the PIDs of a tree and the GPU device files that it has open.
func (f processes) gpuFiles(tree []Process) collect.GPUHints {
	var h collect.GPUHints
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

// readVisibility sets the visible GPUs from an environment; false if it sets none of the
// variables.
func readVisibility(h *collect.GPUHints, env map[string]string) bool {
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
func (f procfiles) deviceFiles(pid int) (minors, renders []int) {
	targets, _ := f.descriptors(pid)
	for _, target := range targets {
		minors = appendNumber(minors, target, "/dev/nvidia")
		renders = appendNumber(renders, target, "/dev/dri/renderD")
	}
	return minors, renders
}

// appendNumber appends the number after the prefix, if there is one.
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
