package gpu

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rooftop-dev/rooftop/collect"
)

// Eight GPUs in PCI order, as a DGX shows them.
func eight() []Device {
	devices := make([]Device, 8)
	for i := range devices {
		devices[i] = Device{Index: i, Minor: i, GI: -1, UUID: "GPU-" + string(rune('a'+i)) + "0000000-1111-2222-3333-444444444444"}
	}
	return devices
}

// One whole GPU, and one that is cut into two slices.
func sliced() []Device {
	const parent = "GPU-bbbb0000-1111-2222-3333-444444444444"
	return []Device{
		{Index: 0, Minor: 0, GI: -1, UUID: "GPU-aaaa0000-1111-2222-3333-444444444444"},
		{Index: 1, Minor: 1, GI: 1, Parent: parent, UUID: "MIG-11111111-aaaa-5555-9999-000000000000"},
		{Index: 1, Minor: 1, GI: 2, Parent: parent, UUID: "MIG-22222222-aaaa-5555-9999-000000000000"},
	}
}

// Two AMD cards beside the graphics of the processor, which comes first on the bus.
func radeons() []Device {
	return []Device{
		{Index: 0, Minor: -1, GI: -1, UUID: "PCI-0000:02:00.0", Render: 128, Integrated: true},
		{Index: 1, Minor: -1, GI: -1, UUID: "GPU-7c9a02f8d1a3b6e4", Render: 129},
		{Index: 2, Minor: -1, GI: -1, UUID: "GPU-e2d0f31c4bbf1c05", Render: 130},
	}
}

func TestSelect(t *testing.T) {
	const (
		process = "the driver's process list"
		files   = "the /dev/nvidia* files that the server holds open"
		renders = "the /dev/dri/render* files that the server holds open"
	)
	all8 := []int{0, 1, 2, 3, 4, 5, 6, 7}
	set := func(v string) collect.GPUHints { return collect.GPUHints{Visible: v, VisibleSet: true} }
	tests := []struct {
		name      string
		devices   []Device
		processes map[string][]int
		holder    collect.GPUHints
		want      Selection
	}{
		{"no GPU", nil, nil, collect.GPUHints{}, Selection{How: "no GPU is readable"}},
		{"two of eight by PID, in spite of the environment", eight(),
			map[string][]int{eight()[2].UUID: {7, 4242}, eight()[3].UUID: {4243}, eight()[4].UUID: {9}},
			collect.GPUHints{PIDs: []int{4000, 4242, 4243}, Visible: "0,1", VisibleSet: true},
			Selection{Positions: []int{2, 3}, How: process}},
		{"PIDs of the host, seen from a container", eight(),
			map[string][]int{eight()[2].UUID: {900123}},
			collect.GPUHints{PIDs: []int{1, 77}, Visible: "5", VisibleSet: true},
			Selection{Positions: []int{5}, How: "CUDA_VISIBLE_DEVICES=5"}},
		{"indices, spaces and order", eight(), nil, set(" 3, 1"), Selection{Positions: []int{1, 3}, How: "CUDA_VISIBLE_DEVICES= 3, 1"}},
		{"ends at the first that does not exist", eight(), nil, set("1,8,2"), Selection{Positions: []int{1}, How: "CUDA_VISIBLE_DEVICES=1,8,2"}},
		{"-1 hides what follows", eight(), nil, set("0,-1,2"), Selection{Positions: []int{0}, How: "CUDA_VISIBLE_DEVICES=0,-1,2"}},
		{"set and empty", eight(), nil, set(""), Selection{Positions: []int{}, How: "CUDA_VISIBLE_DEVICES is set and empty, so it shows no GPU"}},
		{"a word", eight(), nil, set("NoDevFiles"), Selection{Positions: []int{}, How: "CUDA_VISIBLE_DEVICES=NoDevFiles: no GPU of that name here"}},
		{"named twice", eight(), nil, set("2,2"), Selection{Positions: []int{},
			How: "CUDA_VISIBLE_DEVICES=2,2 names a device twice, so it shows no GPU"}},
		{"whole UUID", eight(), nil, set(eight()[6].UUID), Selection{Positions: []int{6}, How: "CUDA_VISIBLE_DEVICES=" + eight()[6].UUID}},
		{"UUID cut short", eight(), nil, set("GPU-c0,GPU-a"), Selection{Positions: []int{0, 2}, How: "CUDA_VISIBLE_DEVICES=GPU-c0,GPU-a"}},
		{"UUID cut too short", eight(), nil, set("GPU-"), Selection{Positions: []int{}, How: "CUDA_VISIBLE_DEVICES=GPU-: no GPU of that name here"}},
		{"slice by UUID", sliced(), nil, set("MIG-2222"), Selection{Positions: []int{2}, How: "CUDA_VISIBLE_DEVICES=MIG-2222"}},
		{"a GPU in MIG mode by number is its first slice", sliced(), nil, set("1"), Selection{Positions: []int{1}, How: "CUDA_VISIBLE_DEVICES=1"}},
		{"a GPU in MIG mode by UUID is its first slice", sliced(), nil, set("GPU-bbbb"), Selection{Positions: []int{1}, How: "CUDA_VISIBLE_DEVICES=GPU-bbbb"}},
		{"slice by PID", sliced(), map[string][]int{sliced()[1].UUID: {5}}, collect.GPUHints{PIDs: []int{5}}, Selection{Positions: []int{1}, How: process}},
		{"open files", eight(), nil, collect.GPUHints{PIDs: []int{1}, Minors: []int{7, 0}}, Selection{Positions: []int{0, 7}, How: files}},
		{"open files of a sliced GPU do not show its slices", sliced(), nil, collect.GPUHints{Minors: []int{1}}, Selection{Positions: []int{1, 2}, How: files, Assumed: true}},
		{"open files of GPUs that are not here", eight(), nil, collect.GPUHints{Minors: []int{12}}, Selection{Positions: all8, Assumed: true,
			How: "all 8 GPUs: neither the driver's process list, CUDA_VISIBLE_DEVICES nor open device files identify the server's"}},
		{"nothing known, one GPU", eight()[:1], nil, collect.GPUHints{}, Selection{Positions: []int{0}, How: "the only GPU of this machine"}},
		{"one GPU, and a server that shows no sign of it", eight()[:1], map[string][]int{}, collect.GPUHints{PIDs: []int{5}}, Selection{Positions: []int{0}, Assumed: true,
			How: "the only GPU of this machine, though neither the driver's process list, CUDA_VISIBLE_DEVICES nor open device files tie the server to it"}},
		{"AMD by PID", radeons(), map[string][]int{"GPU-e2d0f31c4bbf1c05": {5}}, collect.GPUHints{PIDs: []int{5}}, Selection{Positions: []int{2}, How: process}},
		{"AMD by UUID", radeons(), nil, collect.GPUHints{Visible: "GPU-7c9a", VisibleSet: true, VisibleName: "ROCR_VISIBLE_DEVICES"},
			Selection{Positions: []int{1}, How: "ROCR_VISIBLE_DEVICES=GPU-7c9a"}},
		{"AMD, set and empty", radeons(), nil, collect.GPUHints{VisibleSet: true, VisibleName: "HIP_VISIBLE_DEVICES"},
			Selection{Positions: []int{}, How: "HIP_VISIBLE_DEVICES is set and empty, so it shows no GPU"}},
		{"one AMD card by its open file", radeons(), nil, collect.GPUHints{Renders: []int{130}}, Selection{Positions: []int{2}, How: renders}},
		{"ROCm opens them all, and the processor's with them", radeons(), nil, collect.GPUHints{Renders: []int{128, 129, 130}},
			Selection{Positions: []int{1, 2}, How: renders, Assumed: true}},
		{"only the processor's is open", radeons(), nil, collect.GPUHints{Renders: []int{128}}, Selection{Positions: []int{0}, How: renders}},
		{"nothing known leaves out the processor's", radeons(), nil, collect.GPUHints{}, Selection{Positions: []int{1, 2}, Assumed: true,
			How: "all 2 GPUs: neither the driver's process list, CUDA_VISIBLE_DEVICES nor open device files identify the server's"}},
		{"a processor's alone is not used unless something says so", radeons()[:1], nil, collect.GPUHints{PIDs: []int{5}}, Selection{Positions: []int{},
			How: "the only GPU here is part of a processor, and neither the driver's process list, CUDA_VISIBLE_DEVICES nor open device files tie the server to it"}},
		{"nothing known", eight(), map[string][]int{}, collect.GPUHints{PIDs: []int{5}}, Selection{Positions: all8, Assumed: true,
			How: "all 8 GPUs: neither the driver's process list, CUDA_VISIBLE_DEVICES nor open device files identify the server's"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Select(tt.devices, tt.processes, tt.holder)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Select (-want +got):\n%s", diff)
			}
		})
	}
}
