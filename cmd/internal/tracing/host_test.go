package tracing

import "testing"

func TestDistinct(t *testing.T) {
	if got := distinct([]int{0, 1, 2, 3}, func(c int) string { return []string{"0", "1"}[c%2] }); got != 2 {
		t.Errorf("%d, want 2", got)
	}
	if got := distinct([]int{0, 1}, func(int) string { return "" }); got != 0 {
		t.Errorf("not known: %d", got)
	}
}

func TestNameIn(t *testing.T) {
	for text, want := range map[string][2]string{
		"processor : 0\nmodel name\t: AMD EPYC 9654 96-Core Processor\n\nprocessor : 1\nmodel name : other\n": {"AMD EPYC 9654 96-Core Processor", ""},
		"processor: 0\nCPU implementer: 0x41\nCPU part : 0xd40\n\nCPU part : 0xd41\n":                         {"", "0x41 0xd40"},
		"processor: 0\n": {}, "": {}, "model name": {}, "model name:\n": {},
	} {
		if name, codes := nameIn(text); name != want[0] || codes != want[1] {
			t.Errorf("%q: %q, %q, want %q", text, name, codes, want)
		}
	}
}

func TestThisMachine(t *testing.T) {
	if _, err := thisMachine(); err != nil {
		t.Error(err)
	}
}
