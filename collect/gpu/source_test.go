package gpu

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine"
)

// stub is a source that only has a name.
type stub struct {
	Source
	name string
}

func (s stub) Name() string { return s.name }

func TestOpenChooses(t *testing.T) {
	works := func(name string) attempt {
		return attempt{name, func(context.Context) (Source, error) { return stub{name: name}, nil }}
	}
	fails := func(name, reason string) attempt {
		return attempt{name, func(context.Context) (Source, error) { return nil, errors.New(reason) }}
	}
	dcgm := dcgmFile(t, "h100x2.prom").fetch
	gone := (&exporter{err: errors.New("connection refused")}).fetch
	const off = "switches off GPU utilization, power, tokens per watt, VRAM, clocks and the power-limit rule; "
	tests := []struct {
		name    string
		options Options
		local   []attempt
		want    string // "" no source
		missing []engine.Missing
	}{
		{"NVML first", Options{}, []attempt{works("NVML"), works("nvidia-smi")}, "NVML", nil},
		{"nvidia-smi instead", Options{}, []attempt{fails("NVML", "no library"), works("nvidia-smi")}, "nvidia-smi", []engine.Missing{
			{What: "NVML", Reason: "no library", Effect: "switches off the energy counter, DRAM and tensor-core use, PCIe and NVLink traffic; nvidia-smi is read instead"}}},
		{"AMD's where NVIDIA has none", Options{}, []attempt{fails("NVML", "no library"), fails("nvidia-smi", "not found"), works("AMD")}, "AMD", []engine.Missing{
			{What: "NVML", Reason: "no library", Effect: "switches off NVIDIA GPUs, if there are any; AMD's are read instead"},
			{What: "nvidia-smi", Reason: "not found", Effect: "switches off NVIDIA GPUs, if there are any; AMD's are read instead"}}},
		{"nothing", Options{}, []attempt{fails("NVML", "no library"), fails("nvidia-smi", "not found")}, "", []engine.Missing{
			{What: "GPU", Reason: "NVML: no library; nvidia-smi: not found",
				Effect: off + "if the server has a GPU, name it with --gpu for the ceilings, or pass --dcgm-url"}}},
		{"an exporter that was named comes first", Options{DCGM: dcgm}, []attempt{works("NVML")}, "DCGM exporter", nil},
		{"an exporter that does not answer", Options{DCGM: gone}, []attempt{works("NVML")}, "NVML", []engine.Missing{
			{What: "DCGM exporter", Reason: "connection refused", Effect: "switches off nothing: NVML is read instead"}}},
		{"a remote server's GPUs are not this machine's", Options{Remote: "10.1.2.3"}, []attempt{works("NVML")}, "", []engine.Missing{
			{What: "GPU", Reason: "the server runs on 10.1.2.3, and this machine's GPUs are not its own",
				Effect: off + "pass --dcgm-url with the page of that node's DCGM exporter, or run rooftop there; name the GPU with --gpu for the ceilings"}}},
		{"a remote server with its exporter", Options{Remote: "10.1.2.3", DCGM: dcgm}, []attempt{works("NVML")}, "DCGM exporter", nil},
		{"a remote server whose exporter is gone", Options{Remote: "10.1.2.3", DCGM: gone}, []attempt{works("NVML")}, "", []engine.Missing{
			{What: "GPU", Reason: "DCGM exporter: connection refused",
				Effect: off + "check --dcgm-url, or run rooftop on 10.1.2.3; name the GPU with --gpu for the ceilings"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.options.Clock = (&hand{}).now
			s, missing := open(t.Context(), tt.options, tt.local)
			got := ""
			if s != nil {
				got = s.Name()
			}
			if got != tt.want {
				t.Errorf("source: got %q, want %q", got, tt.want)
			}
			if diff := cmp.Diff(tt.missing, missing); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
		})
	}
}

// A way of reading that hangs is given up after a while, for the next one.
func TestOpenGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := attempt{"NVML", func(ctx context.Context) (Source, error) { <-ctx.Done(); return nil, ctx.Err() }}
		works := attempt{"nvidia-smi", func(context.Context) (Source, error) { return stub{name: "nvidia-smi"}, nil }}
		began := time.Now()
		s, missing := open(t.Context(), Options{}, []attempt{hangs, works})
		if s == nil || s.Name() != "nvidia-smi" || len(missing) != 1 || time.Since(began) != openTimeout {
			t.Errorf("got %v, %v after %v", s, missing, time.Since(began))
		}
	})
}
