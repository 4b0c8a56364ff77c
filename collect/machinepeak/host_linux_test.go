package machinepeak

import (
	"slices"
	"testing"
)

func TestCoresFirst(t *testing.T) {
	pairs := func(c int) string { return [...]string{"0,4", "1,5", "2,6", "3,7"}[c%4] }
	if got := coresFirst([]int{0, 1, 4, 5, 6}, pairs); !slices.Equal(got, []int{0, 1, 6, 4, 5}) {
		t.Errorf("two to a core: %v", got)
	}
	unknown := func(int) string { return "" }
	if got := coresFirst([]int{3, 1, 2}, unknown); !slices.Equal(got, []int{3, 1, 2}) {
		t.Errorf("cores not known: %v", got)
	}
}

func TestCacheSize(t *testing.T) {
	for text, want := range map[string]int{"32768K\n": 32 << 20, "12M": 12 << 20, "512": 512, "": 0, "K": 0, "-4K": 0, "99999999999999K": 0} {
		if got := cacheSize(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestAvailable(t *testing.T) {
	for text, want := range map[string]int{
		"MemTotal: 5 kB\nMemAvailable:   1024 kB\n": 1 << 20, "MemTotal: 5 kB\n": 0, "": 0, "MemAvailable: x kB": 0, "MemAvailable:": 0, "MemAvailable: -3 kB": 0,
	} {
		if got := available(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
