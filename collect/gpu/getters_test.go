package gpu

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// setter matches a call of a method that changes a GPU, or the C name of such a function.
var setter = regexp.MustCompile(`(\.|\bnvml)(Device|Gpm|System|Vgpu\w*|Unit|Event|GpuInstance|ComputeInstance)?` +
	`(Set|Reset|Clear|Create|Destroy|Freeze|Modify|Remove|Validate|Activate|Register|PowerSmoothing|Workload)[A-Z]\w*`)

// nvmlAllowed are the package-level functions and conversions of go-nvml that this package uses:
// everything else goes through the narrow interfaces, which have no setter.
var nvmlAllowed = []string{"New", "WithLibraryPath", "Return"}

// TestOnlyGetters reads the package's source, all build tags included: NVML is only read.
func TestOnlyGetters(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	call, read := regexp.MustCompile(`\bnvml\.(\w+)\(`), 0
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil || strings.HasSuffix(f, "_test.go") {
			continue
		}
		if found := setter.FindString(string(src)); found != "" || strings.Contains(string(src), "unsafe") || strings.Contains(string(src), `import "C"`) {
			t.Errorf("%s changes a GPU, or reaches around go-nvml: %s", f, found)
		}
		for _, m := range call.FindAllStringSubmatch(string(src), -1) {
			if read++; !slices.Contains(nvmlAllowed, m[1]) {
				t.Errorf("%s calls nvml.%s", f, m[1])
			}
		}
	}
	if read < 3 {
		t.Errorf("%d calls of go-nvml: the test looks in the wrong place", read)
	}
}
