package main

import (
	"strings"
	"testing"
)

func TestAFlagThatIsMeantIsNamed(t *testing.T) {
	for _, c := range []struct{ flag, want string }{
		{"--refesh", "did you mean --refresh?"},
		{"--max-num-seq", "did you mean --max-num-seqs?"},
		{"--ulr", "did you mean --url?"},
		{"--goal", ""},
		{"-x", ""},
	} {
		_, stderr, code := call(t, nil, "tune", c.flag, "1")
		if code != exitUsage || !strings.Contains(stderr, c.want) || c.want == "" && strings.Contains(stderr, "did you mean") {
			t.Errorf("tune %s: exit code %d: %s", c.flag, code, stderr)
		}
		if strings.Count(stderr, "\n") != 1 {
			t.Errorf("not one line: %s", stderr)
		}
	}
}

// What a flag takes is said in words of the field, not of a library.
func TestAValueThatCannotBeRead(t *testing.T) {
	for _, c := range []struct{ flag, text, want string }{
		{"--duration", "abc", `--duration "abc": give a time, as in 30s or 5m`},
		{"--duration", "5", `--duration "5" has no unit: write 5s or 5m`},
		{"--max-restarts", "1.5", `--max-restarts "1.5": give a whole number`},
		{"--cost-per-hour", "x", `--cost-per-hour "x": give a number`},
		{"--auto=perhaps", "--plain", `--auto "perhaps": give true or false`},
		{"--auto", "--allow-flags=", "--allow-flags names no flag"},
	} {
		_, stderr, code := call(t, nil, "tune", c.flag, c.text)
		if code != exitUsage || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("tune %s %s: exit code %d: %s", c.flag, c.text, code, stderr)
		}
	}
	_, stderr, code := call(t, []string{"ROOFTOP_DURATION=soon"}, "tune")
	if want := `the variable ROOFTOP_DURATION: --duration "soon": give a time`; code != exitUsage || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
