//go:build linux && cgo

package gpu

import (
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
)

// After an Init that failed, any other call would end the process. The fakes
// here have no other function: a call would panic and show in the error.
func TestNVMLInitFails(t *testing.T) {
	refusing := func(r nvml.Return) *mock.Interface {
		return &mock.Interface{InitFunc: func() nvml.Return { return r }}
	}
	tests := []struct {
		name string
		libs []*mock.Interface
		want string
		used []int // Init calls of each
	}{
		{"no library", []*mock.Interface{refusing(nvml.ERROR_LIBRARY_NOT_FOUND), refusing(nvml.ERROR_LIBRARY_NOT_FOUND)},
			"libnvidia-ml.so.1 was not found", []int{1, 1}},
		{"no driver", []*mock.Interface{refusing(nvml.ERROR_DRIVER_NOT_LOADED), refusing(nvml.SUCCESS)}, "driver is not loaded", []int{1, 0}},
		{"library and module differ", []*mock.Interface{refusing(nvml.ERROR_LIB_RM_VERSION_MISMATCH)}, "reboot", []int{1}},
		{"no permission", []*mock.Interface{refusing(nvml.ERROR_NO_PERMISSION)}, "/dev/nvidiactl", []int{1}},
		{"anything else", []*mock.Interface{refusing(nvml.ERROR_UNKNOWN)}, "NVML error 999", []int{1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var libs []library
			for _, l := range tt.libs {
				libs = append(libs, l)
			}
			s, err := openNVML(t.Context(), newTicker(0).now, libs...)
			if s != nil || err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "panic") {
				t.Errorf("open: got %v, %v; want an error with %q", s, err, tt.want)
			}
			for i, l := range tt.libs {
				if got := len(l.InitCalls()); got != tt.used[i] {
					t.Errorf("library %d: Init was called %d times, want %d", i, got, tt.used[i])
				}
			}
		})
	}
}
