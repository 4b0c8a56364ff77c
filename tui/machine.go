package tui

import (
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// machineCells is the maximum width of the view, in cells.
const machineCells = 130

// machine returns the view of GPUs, the server's processes, and rooftop's own data sources.
func machine(s *loop.Snapshot, u *frame.Settings, width int) frame.Content {
	l := frame.NewListing(u, width, machineCells, u.Matching(tuning.Machine(s)), tuning.MachineProcesses)
	return withTimes(l, s, u, 3, measuredOver(s, gpuMeasures()))
}
