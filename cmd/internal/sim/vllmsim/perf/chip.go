package perf

import (
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
)

// chip holds the data of a GPU that the catalog lacks: multiprocessors and clocks, from the vendors' data
// sheets and architecture papers.
type chip struct {
	processors                float64
	smMHz, memoryMHz, idleMHz float64
}

// chips lists chips by a part of the GPU's name, then by its architecture; the first match applies.
var chips = []struct {
	part string
	chip
}{
	{"H200", chip{132, 1980, 3201, 345}},
	{"H100 PCIe", chip{114, 1755, 1593, 345}},
	{"NVIDIA L40", chip{142, 2520, 9001, 210}},
	{"NVIDIA L4", chip{58, 2040, 6251, 210}},
	{"L20", chip{92, 2520, 9001, 210}},
	{"4090", chip{128, 2520, 10501, 210}},
	{"A100", chip{108, 1410, 1593, 210}},
	{"A30", chip{56, 1440, 1215, 210}},
	{"A10", chip{72, 1695, 6251, 210}},
	{"3090", chip{82, 1695, 9751, 210}},
	{"5090", chip{170, 2407, 14001, 180}},
	{"MI300X", chip{304, 2100, 1300, 132}},
	{"MI325X", chip{304, 2100, 1500, 132}},
	{"sm70", chip{80, 1530, 877, 135}},
	{"sm75", chip{40, 1590, 5001, 300}},
	{"sm80", chip{108, 1410, 1593, 210}},
	{"sm86", chip{84, 1695, 7251, 210}},
	{"sm89", chip{128, 2520, 9001, 210}},
	{"sm90", chip{132, 1980, 2619, 345}},
	{"sm100", chip{148, 1965, 3996, 120}},
	{"sm103", chip{148, 1965, 3996, 120}},
	{"sm120", chip{188, 2617, 13365, 180}},
}

func chipOf(g catalog.GPU) chip {
	for _, c := range chips {
		if strings.Contains(g.Name, c.part) || strings.HasSuffix(g.Arch, c.part) {
			return c.chip
		}
	}
	return chip{100, 2000, 2000, 200} // assumed
}
