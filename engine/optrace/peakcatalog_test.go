package optrace

import (
	"testing"

	"github.com/rooftop-dev/rooftop/catalog"
)

func TestCatalogRoof(t *testing.T) {
	c := &catalog.CPU{Name: "Example", MemChannels: 8, TransferMTs: 3200, FP32PerCycle: 32, INT8PerCycle: 128, MaxGHz: 4} // 204.8 GB/s
	for at, want := range map[Sockets]PeakPoint{
		{Threads: 1}:                       {1, 50e9, 128e9, 512e9},
		{Threads: 4, Cores: 2}:             {4, 100e9, 256e9, 1024e9},
		{Threads: 32, Cores: 64}:           {32, 0.85 * 204.8e9, 32 * 128e9, 32 * 512e9},
		{Threads: 64, Cores: 64, Count: 2}: {64, 2 * 0.85 * 204.8e9, 64 * 128e9, 64 * 512e9},
		{}:                                 {1, 50e9, 128e9, 512e9},
	} {
		r := CatalogPeak(c, at)
		if got := (PeakPoint{r.Threads, r.BytesPerSecond, r.FlopsPerSecond, r.Int8PerSecond}); got != want || r.From != PeakCatalog || !r.Known() {
			t.Errorf("%+v: %+v, want %+v", at, r, want)
		}
	}
	if r := CatalogPeak(&catalog.CPU{MemChannels: 1, TransferMTs: 3200}, Sockets{Threads: 1}); r.FlopsPerSecond != 0 || r.FlopsOf != "" || r.Int8Of != "" {
		t.Errorf("vector units not known: %+v", r)
	}
}
