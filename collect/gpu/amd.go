package gpu

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/collect"
)

// openLocalAMD opens this machine's AMD GPUs through the driver's files.
func openLocalAMD(ctx context.Context, clock func() time.Duration) (Source, error) {
	s, err := openAMD(ctx, clock, os.DirFS("/"))
	if err != nil {
		return nil, err
	}
	return s, nil
}

const (
	kfdProcesses = "sys/class/kfd/kfd/proc"
	kfdNodes     = "sys/class/kfd/kfd/topology/nodes"
)

// kfdMinBytes is the GPU memory from which a process counts as a user of that GPU: the
// runtime opens every GPU that it sees and allocates a little on each.
const kfdMinBytes = 64 << 20

// Processes implements [Source]. The compute driver lists the processes that
// opened it, by the host's PIDs, and the memory that each has on each GPU
// (kernel, drivers/gpu/drm/amd/amdkfd/kfd_process.c).
func (s *amdSource) Processes(ctx context.Context) (map[string][]int, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	processes, err := fs.ReadDir(s.root, kfdProcesses)
	if err != nil {
		return nil, fmt.Errorf("the compute driver's processes cannot be listed: %w: %w", collect.ErrNoData, err)
	}
	gpus := s.kfdGPUs()
	held := map[string][]int{}
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		files, err := fs.ReadDir(s.root, path.Join(kfdProcesses, p.Name()))
		if err != nil {
			continue // it ended
		}
		for _, f := range files {
			id, isMemory := strings.CutPrefix(f.Name(), "vram_")
			uuid, known := gpus[id]
			if !isMemory || !known {
				continue
			}
			if bytes, err := readNumber(s.root, path.Join(kfdProcesses, p.Name(), f.Name())); err == nil && bytes.V >= kfdMinBytes {
				held[uuid] = append(held[uuid], pid)
			}
		}
	}
	return held, nil
}

// kfdGPUs maps the compute driver's GPU IDs to the UUIDs of our devices, joined by the
// number of the render node.
func (s *amdSource) kfdGPUs() map[string]string {
	gpus := map[string]string{}
	nodes, err := fs.ReadDir(s.root, kfdNodes)
	if err != nil {
		return gpus
	}
	for _, n := range nodes {
		id := readText(s.root, path.Join(kfdNodes, n.Name(), "gpu_id"))
		if id == "" || id == "0" {
			continue // a CPU node
		}
		for line := range strings.Lines(readText(s.root, path.Join(kfdNodes, n.Name(), "properties"))) {
			value, ok := strings.CutPrefix(strings.TrimSpace(line), "drm_render_minor ")
			minor, err := strconv.Atoi(value)
			if !ok || err != nil {
				continue
			}
			for _, d := range s.devices {
				if d.Render == minor && minor > 0 {
					gpus[id] = d.UUID
				}
			}
		}
	}
	return gpus
}
