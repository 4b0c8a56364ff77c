package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
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
		if code != cli.ExitUsage || !strings.Contains(stderr, c.want) || c.want == "" && strings.Contains(stderr, "did you mean") {
			t.Errorf("tune %s: exit code %d: %s", c.flag, code, stderr)
		}
		if strings.Count(stderr, "\n") != 1 {
			t.Errorf("not one line: %s", stderr)
		}
	}
}

// Errors about flag values use the terms of the field, not of a library.
func TestAValueThatCannotBeRead(t *testing.T) {
	for _, c := range []struct{ flag, text, want string }{
		{"--duration", "abc", `--duration "abc": give a time, as in 30s or 5m`},
		{"--duration", "5", `--duration "5" has no unit: write 5s or 5m`},
		{"--max-restarts", "1.5", `--max-restarts "1.5": give a whole number`},
		{"--cost-per-hour", "x", `--cost-per-hour "x": give a number`},
		{"--auto=perhaps", "--plain", `--auto "perhaps": give true or false`},
		{"--auto", "--allow-flags=", "--allow-flags names no flag"},
		{"--auto", "--countdown=90m", "--countdown 1h30m: give 0s to 1h"},
	} {
		_, stderr, code := call(t, nil, "tune", c.flag, c.text)
		if code != cli.ExitUsage || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("tune %s %s: exit code %d: %s", c.flag, c.text, code, stderr)
		}
	}
	_, stderr, code := call(t, []string{"ROOFTOP_DURATION=soon"}, "tune")
	if want := `the variable ROOFTOP_DURATION: --duration "soon": give a time`; code != cli.ExitUsage || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// A misspelled name of anything gets the one that is most like it.
func TestANameThatIsMeantIsNamed(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"diagnoze", `unknown command "diagnoze" for "rooftop"; did you mean diagnose?; 'rooftop --help' lists the commands`},
		{"tun", "did you mean tune?"},
		{"foo", `unknown command "foo" for "rooftop"; 'rooftop --help' lists the commands`},
		{"map", `unknown command "map" for "rooftop"; did you mean man?`},
		{"sum --sim-gpu L4", "did you mean sim?"},
		{"diagnose --foo", "unknown flag: --foo; see"},
		{"diagnose --url http:/foo", `--url: not a server address: "http:/foo" has one slash after its scheme, not two; give --url as http://HOST:PORT`},
		{"fleet --urls x --prometheus http://127.0.0.1:1", "fleet: --prometheus http://127.0.0.1:1 and --urls x both name servers: give one of them"},
		{"mcp --allow-changes foo", "--allow-changes foo is not an address of this machine"},
		{"explain conc-saturation", "did you mean concurrency-saturation?"},
		{"explain kv-presure", "did you mean kv-pressure?"},
		{"demo --scenario failng/8b-a100", "did you mean failing/8b-a100?; 'rooftop demo --list' lists them"},
		{"demo --scenario nothing", "one scenario (healthy/8b-l4); 'rooftop demo --list' lists them"},
		{"demo failing/8b-a100", "did you mean --scenario failing/8b-a100?"},
		{"demo nothing", "is a -- missing before a flag?"},
		{"sim --sim-scenario failng", "did you mean failing?; 'rooftop demo --list' lists them"},
		{"sim --sim-gpu H10", `"H10" is not in the catalog (nearest: NVIDIA H100`},
		{"sim Qwen3-9B", "is not in the catalog (nearest: Qwen/Qwen3-4B, Qwen/Qwen3-8B,"},
		{"ceiling --model x --gpu H1000", `GPU "H1000" is not in the catalog (nearest: NVIDIA H100`},
	} {
		_, stderr, code := call(t, nil, strings.Fields(c.line)...)
		if code != cli.ExitUsage || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d: %s, want %q", c.line, code, stderr, c.want)
		}
	}
}

// A recording that cannot be created is refused before anything is measured.
func TestWhereNoRecordingCanBe(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, `vllm:num_requests_running{model_name="m"} 0`)
	}))
	defer s.Close()
	for path, want := range map[string]string{
		".":           "--record: . is a directory; give the name of a new file, as run.gz",
		"gone/run.gz": "--record: there is no directory gone for run.gz; create it, or choose another one",
		"main.go":     "--record: main.go exists already",
	} {
		if _, stderr, code := call(t, nil, "diagnose", "--url", s.URL, "--record", path); code != cli.ExitUsage || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("exit code %d: %s, want %q", code, stderr, want)
		}
	}
}

// Two forms of output at once are rejected, whatever the command; a variable gives way to the flag.
func TestOneFormOfOutput(t *testing.T) {
	for _, command := range []string{"version", "demo", "diagnose", "catalog list", "load"} {
		_, stderr, code := call(t, nil, append(strings.Fields(command), "--json", "--plain")...)
		if want := command + ": --json and --plain are two forms of output: give one"; code != cli.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d: %s", command, code, stderr)
		}
	}
	if _, stderr, code := call(t, []string{"ROOFTOP_PLAIN=true"}, "version", "--json"); code != cli.ExitDone {
		t.Errorf("the variable and the flag: exit code %d: %s", code, stderr)
	}
	if _, stderr, code := call(t, nil, "version", "--json", "--plain=false"); code != cli.ExitDone {
		t.Errorf("--plain=false: exit code %d: %s", code, stderr)
	}
}

// Two names for a trace are rejected before anything else.
func TestATraceTakesOneName(t *testing.T) {
	_, stderr, code := call(t, nil, "trace", "a", "b")
	if want := "trace takes one name or recording, but got 2"; code != cli.ExitUsage || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d: %s, want %q", code, stderr, want)
	}
}
