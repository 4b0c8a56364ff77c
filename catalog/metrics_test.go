package catalog

import (
	"slices"
	"strings"
	"testing"
)

func TestMetricsAreComplete(t *testing.T) {
	seen := make(map[string]bool)
	for _, m := range EngineOf(VLLM).Metrics() {
		if m.Unit == "" || !strings.HasSuffix(m.Meaning, ".") || len(m.Names) == 0 || seen[m.Key] {
			t.Errorf("%s: incomplete or twice: %+v", m.Key, m)
		}
		seen[m.Key] = true
		for _, name := range m.Names {
			if strings.Contains(name, ":") || name != strings.ToLower(name) {
				t.Errorf("%s: %q is not a wire name without prefix", m.Key, name)
			}
		}
		// Python's client appends _total to every counter; the name without it
		// is how some pages (OpenMetrics, early ones) spell it.
		if m.Kind == KindCounter && !strings.HasSuffix(m.Names[0], "_total") {
			t.Errorf("%s: the first name of a counter ends in _total, not %q", m.Key, m.Names[0])
		}
		if m.Kind == KindHistogram && m.Unit == "seconds" && !strings.HasSuffix(m.Names[0], "_seconds") {
			t.Errorf("%s: %q is not in seconds", m.Key, m.Names[0])
		}
		for _, v := range []string{m.Since, m.Until} {
			if _, ok := parseRelease(v); v != "" && !ok {
				t.Errorf("%s: release %q", m.Key, v)
			}
		}
	}
}

// TestMetricsAreImmutable checks that a caller's change does not affect the next caller.
func TestMetricsAreImmutable(t *testing.T) {
	first := EngineOf(VLLM).Metrics()
	i := slices.IndexFunc(first, func(m Metric) bool { return len(m.Labels) > 0 })
	first[i].Names[0], first[i].Labels["reason"] = "x", "x"
	if again := EngineOf(VLLM).Metrics()[i]; again.Names[0] == "x" || again.Labels["reason"] == "x" {
		t.Errorf("Metrics shares memory with its callers: %+v", again)
	}
}
