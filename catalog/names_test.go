package catalog

import (
	"errors"
	"strings"
	"testing"
)

// FuzzNames checks that looking up any name returns an entry, an *AmbiguousError or an error that wraps
// ErrUnknown, and always the same.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"NVIDIA H100 80GB HBM3", "h100sxm5-80gb", "A100 80 GB (330 W cap)", "meta-llama/Llama-3_1-8B-Instruct-FP8-dynamic",
		"/models--a--b/snapshots/0123", "Q4_K_M.gguf", "8x7b", "…/☃", "\x00\xff", "...", "1.2.3.4", "İ"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		g, err := Default().FindGPU(name, 0)
		checkLookup(t, "GPU", name, g.Name, err)
		m, err := Default().FindModel(name)
		checkLookup(t, "model", name, m.ID, err)
		if again, _ := Default().FindModel(strings.ToUpper(strings.ToLower(name))); strings.ToLower(name) == name && isASCII(name) && again.ID != m.ID {
			t.Errorf("FindModel(%q) = %q, in capitals %q", name, m.ID, again.ID)
		}
		c, err := Default().FindCPU(name)
		checkLookup(t, "CPU", name, c.Name, err)
		if d, _, ok := DTypeOfName(name); ok != (d.Bytes() > 0) {
			t.Errorf("DTypeOfName(%q) = %q, %v", name, d, ok)
		}
		if d, ok := ParseDType(name); ok != (d.Bytes() > 0) {
			t.Errorf("ParseDType(%q) = %q, %v", name, d, ok)
		}
	})
}

func checkLookup(t *testing.T, kind, name, found string, err error) {
	t.Helper()
	var ambiguous *AmbiguousError
	switch {
	case err == nil && found != "":
	case errors.As(err, &ambiguous) && len(ambiguous.Candidates) > 1 && found == "":
	case errors.Is(err, ErrUnknown) && found == "":
	default:
		t.Errorf("%s %q: %q, %v", kind, name, found, err)
	}
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > 0x7e })
}
