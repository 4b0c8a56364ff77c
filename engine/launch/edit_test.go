package launch

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWith(t *testing.T) {
	tests := []struct {
		name, argv  string
		flag, value string
		want        string
	}{
		{"in place", "vllm serve M --max-num-seqs 256 --port 1", "max_num_seqs", "512", "vllm serve M --max-num-seqs 512 --port 1"},
		{"spelling kept", "vllm serve M --max_num_seqs=256 --port 1", "max-num-seqs", "512", "vllm serve M --max_num_seqs=512 --port 1"},
		{"short flag", "vllm serve M -tp 2", "tensor_parallel_size", "4", "vllm serve M -tp 4"},
		{"short flag with equals sign", "vllm serve M -tp=2", "tensor_parallel_size", "4", "vllm serve M -tp=4"},
		{"glued short flag", "vllm serve M -qfp8", "quantization", "awq", "vllm serve M -q=awq"},
		{"the last of several", "vllm serve M --seed 1 --seed 2", "seed", "3", "vllm serve M --seed 1 --seed 3"},
		{"same value", "vllm serve M --seed 1", "seed", "1", "vllm serve M --seed 1"},
		{"appended", "vllm serve M --port 1", "max_num_seqs", "4", "vllm serve M --port 1 --max-num-seqs 4"},
		{"appended with underscores", "vllm serve M --gpu_memory_utilization 0.9", "max_num_seqs", "4", "vllm serve M --gpu_memory_utilization 0.9 --max_num_seqs 4"},
		{"appended with equals sign", "vllm serve M --port=1 --gpu-memory-utilization=0.9", "max_num_seqs", "4", "vllm serve M --port=1 --gpu-memory-utilization=0.9 --max-num-seqs=4"},
		{"before a lone --", "vllm serve --port 1 -- M", "max_num_seqs", "4", "vllm serve --port 1 --max-num-seqs 4 -- M"},
		{"boolean off", "vllm serve M --enable-prefix-caching --port 1", "enable_prefix_caching", "false", "vllm serve M --no-enable-prefix-caching --port 1"},
		{"boolean off with underscores", "vllm serve M --enable_prefix_caching", "enable_prefix_caching", "false", "vllm serve M --no_enable_prefix_caching"},
		{"boolean on", "vllm serve M --no-enable-prefix-caching", "enable_prefix_caching", "true", "vllm serve M --enable-prefix-caching"},
		{"boolean with a value", "vllm serve M --enable-chunked-prefill=false", "enable_chunked_prefill", "true", "vllm serve M --enable-chunked-prefill=true"},
		{"boolean appended", "vllm serve M", "enforce_eager", "true", "vllm serve M --enforce-eager"},
		{"boolean off appended", "vllm serve M", "async-scheduling", "false", "vllm serve M --no-async-scheduling"},
		{"short boolean off", "vllm serve M -ep", "enable_expert_parallel", "false", "vllm serve M --no-enable-expert-parallel"},
		{"a switch without opposite", "vllm serve M --disable-log-stats --port 1", "disable_log_stats", "false", "vllm serve M --port 1"},
		{"list", "vllm serve M --served-model-name a b --port 1", "served_model_name", "c d", "vllm serve M --served-model-name c d --port 1"},
		{"key of an object", `vllm serve M --compilation-config {"mode":3}`, "compilation_config.cudagraph_mode", "FULL", `vllm serve M --compilation-config {"cudagraph_mode":"FULL","mode":3}`},
		{"key beside other keys", "vllm serve M -cc.mode=3", "compilation_config.cudagraph_mode", "FULL", `vllm serve M --compilation-config {"cudagraph_mode":"FULL","mode":3}`},
		{"key in place", "vllm serve M --compilation-config.mode 3 --port 1", "compilation_config.mode", "2", `vllm serve M --port 1 --compilation-config {"mode":2}`},
		{"key of nothing", "vllm serve M", "compilation_config.mode", "2", `vllm serve M --compilation-config {"mode":2}`},
		{"whole object in place of keys", "vllm serve M -cc.mode=3 --port 1", "compilation_config", `{"mode":1}`, `vllm serve M --port 1 --compilation-config {"mode":1}`},
		{"model", "vllm serve M --port 1", "model", "N", "vllm serve N --port 1"},
		{"model of the module", "python -m vllm.entrypoints.openai.api_server --model=M", "model", "N", "python -m vllm.entrypoints.openai.api_server --model=N"},
		{"model where none was", "vllm serve --port 1", "model", "N", "vllm serve N --port 1"},
		{"behind wrappers", "numactl -N 0 uv run vllm serve M", "port", "2", "numactl -N 0 uv run vllm serve M --port 2"},
		{"a simulated server", "rooftop sim M --max-num-seqs 16 --sim-gpu H100", "max_num_seqs", "64", "rooftop sim M --max-num-seqs 64 --sim-gpu H100"},
		{"appended to a simulated server", "rooftop sim M --sim-gpu=H100", "max_num_seqs", "64", "rooftop sim M --sim-gpu=H100 --max-num-seqs=64"},
		{"in a script", "bash -c exec·vllm·serve·M·--port·1··>·log·&", "port", "2", "bash -c exec·vllm·serve·M·--port·2··>·log·&"},
		{"appended in a script", "bash -c exec·vllm·serve·M··>·log·&&·echo·'done·$x'", "hf_overrides", `{"a":"b c"}`, `bash -c exec·vllm·serve·M·--hf-overrides·'{"a":"b·c"}'··>·log·&&·echo·'done·$x'`},
		{"in a script within a script", "sh -c bash·-c·'vllm·serve·M'", "port", "2", "sh -c bash·-c·'vllm·serve·M·--port·2'"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Parse(argv(tt.argv), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			value := strings.ReplaceAll(tt.value, "·", " ")
			d := c.With(tt.flag, value)
			if diff := cmp.Diff(argv(tt.want), d.Argv()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(argv(tt.argv), c.Argv()); diff != "" {
				t.Errorf("the original changed:\n%s", diff)
			}
			again, err := Parse(d.Argv(), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if changes := Diff(d, again); len(changes) > 0 {
				t.Errorf("reading the edited line again differs: %v", changes)
			}
		})
	}
}

func TestWithout(t *testing.T) {
	tests := []struct{ name, argv, flag, want string }{
		{"flag and value", "vllm serve M --max-num-seqs 256 --port 1", "max_num_seqs", "vllm serve M --port 1"},
		{"every occurrence", "vllm serve M --seed=1 -tp 2 --seed 2", "seed", "vllm serve M -tp 2"},
		{"negated", "vllm serve M --no-enable-prefix-caching", "enable_prefix_caching", "vllm serve M"},
		{"list", "vllm serve M --served-model-name a b --port 1", "served_model_name", "vllm serve M --port 1"},
		{"sub-keys", "vllm serve M -cc.mode=3 --compilation-config.x 1", "compilation_config", "vllm serve M"},
		{"one key", `vllm serve M --compilation-config {"a":1,"b":{"c":2,"d":3}}`, "compilation_config.b.c", `vllm serve M --compilation-config {"a":1,"b":{"d":3}}`},
		{"absent", "vllm serve M", "seed", "vllm serve M"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Parse(argv(tt.argv), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(argv(tt.want), c.Without(tt.flag).Argv()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

const commented = `# slots of the big card
max-num-seqs: 256   # raise with care
max_num_batched_tokens: 8k
served-model-name:
  - a
  - b
# compile
compilation-config: '{"mode":3}'
speculative-config:
  method: ngram
  num_speculative_tokens: 3
kv-cache-dtype: "fp8"
async-scheduling: true
`

func TestEditsConfigFile(t *testing.T) {
	tests := []struct {
		name, flag, value string
		from, to          string // what is replaced in the file
	}{
		{"number", "max_num_seqs", "512", "max-num-seqs: 256", "max-num-seqs: 512"},
		{"number with a suffix", "max-num-batched-tokens", "16384", "8k", "16384"},
		{"quoted text", "kv_cache_dtype", "auto", `"fp8"`, "auto"},
		{"text that needs quotes", "kv_cache_dtype", "a: b", `"fp8"`, "'a: b'"},
		{"key of a JSON string", "compilation_config.mode", "2", `'{"mode":3}'`, `'{"mode":2}'`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Parse(argv("vllm serve M --config c.yaml"), nil, []byte(commented))
			if err != nil {
				t.Fatal(err)
			}
			d := c.With(tt.flag, tt.value)
			if diff := cmp.Diff(strings.Replace(commented, tt.from, tt.to, 1), string(d.File())); diff != "" {
				t.Errorf("file (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.Argv(), d.Argv()); diff != "" {
				t.Errorf("the command line changed:\n%s", diff)
			}
			if got, from, _ := d.Value(tt.flag); got != tt.value || from != ConfigFile {
				t.Errorf("%s reads back as %q from %s", tt.flag, got, from)
			}
			over := c.Override(tt.flag, tt.value)
			if string(over.File()) != commented {
				t.Error("Override changed the file")
			}
			if got, from, _ := over.Value(tt.flag); got != tt.value || from != Cmdline {
				t.Errorf("after Override %s reads back as %q from %s", tt.flag, got, from)
			}
		})
	}
}

func TestConfigFileThatCannotHoldAValue(t *testing.T) {
	c, err := Parse(argv("vllm serve M --config c.yaml"), nil, []byte(commented))
	if err != nil {
		t.Fatal(err)
	}
	// vLLM drops a false of the file; the command line says it.
	d := c.With("async_scheduling", "false")
	if got := d.Shell(); got != "vllm serve M --config c.yaml --no-async-scheduling" {
		t.Errorf("async off: %s", got)
	}
	if string(d.File()) != commented {
		t.Error("async off changed the file")
	}
	// An object that spans several lines is rewritten, the rest stays.
	d = c.With("speculative_config.num_speculative_tokens", "5")
	if got, from, _ := d.Value("speculative_config.num_speculative_tokens"); got != "5" || from != ConfigFile {
		t.Errorf("speculation reads back as %q from %s", got, from)
	}
	if !strings.Contains(string(d.File()), "# raise with care") {
		t.Errorf("comments are lost:\n%s", d.File())
	}
	if changes := Diff(c, d); len(changes) != 1 {
		t.Errorf("one edit changed %v", changes)
	}
}

func TestRemovesFromConfigFile(t *testing.T) {
	c, err := Parse(argv("vllm serve M --config c.yaml --max-num-seqs 8"), nil, []byte(commented))
	if err != nil {
		t.Fatal(err)
	}
	d := c.Without("max_num_seqs").Without("served_model_name").Without("speculative-config").Without("async-scheduling")
	want := `# slots of the big card
max_num_batched_tokens: 8k
# compile
compilation-config: '{"mode":3}'
kv-cache-dtype: "fp8"
`
	if diff := cmp.Diff(want, string(d.File())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := d.Shell(); got != "vllm serve M --config c.yaml" {
		t.Errorf("command line: %s", got)
	}
	flow, err := Parse(argv("vllm serve M --config c.yaml"), nil, []byte("{max-num-seqs: 8, port: 1}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(flow.Without("port").File()); got != "{max-num-seqs: 8}\n" {
		t.Errorf("flow mapping: %q", got)
	}
	if got := string(flow.Without("port").Without("max-num-seqs").File()); got != "{}\n" {
		t.Errorf("the last key removed leaves %q, of which vLLM must not die", got)
	}
	if got := string(flow.With("max-num-seqs", "9").File()); got != "{max-num-seqs: 9, port: 1}\n" {
		t.Errorf("flow mapping: %q", got)
	}
}

func TestDiff(t *testing.T) {
	a, err := Parse(argv("vllm serve M --max-num-seqs 4 --api-key one --enforce-eager"), map[string]string{"VLLM_USE_V1": "1", "HF_TOKEN": "x"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Parse(argv("python3 -m vllm.entrypoints.openai.api_server --max_num_seqs=8 --model M --api-key two -tp 2"), map[string]string{"VLLM_USE_V1": "0", "HF_TOKEN": "y"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, change := range Diff(a, b) {
		got = append(got, change.String())
	}
	want := []string{
		"--api-key [redacted] → [redacted]",
		"--enforce-eager true → unset",
		"--max-num-seqs 4 → 8",
		"--tensor-parallel-size unset → 2",
		"HF_TOKEN [redacted] → [redacted]",
		"VLLM_USE_V1 1 → 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if changes := Diff(a, a.WithVariable("VLLM_USE_V1", "1")); len(changes) > 0 {
		t.Errorf("a variable set to what it was: %v", changes)
	}
}

func TestShell(t *testing.T) {
	c, err := Parse([]string{"vllm", "serve", "my model", "--chat-template", "it's {{ x }}", "--hf-overrides", `{"a":1}`, "--revision", ""}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = `vllm serve 'my model' --chat-template 'it'\''s {{ x }}' --hf-overrides '{"a":1}' --revision ''`
	if got := c.Shell(); got != want {
		t.Errorf("Shell() = %s, want %s", got, want)
	}
	again, err := ParseCommand(c.Shell(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if changes := Diff(c, again); len(changes) > 0 {
		t.Errorf("a shell would read something else: %v", changes)
	}
}

// hostile are names that a label, a unit, a file or a host may have.
var hostile = []string{
	"x'; touch pwned; echo '", "$(touch pwned)", "`touch pwned`", "a b", "", "-rf", "~", "~root", "*", "{a,b}", "a=b", "#", "!!", "a\nb", "\\", "'", `"`, "&", "|", ";", "<", ">", "\t", "é", "\x01", "a'b\"c$d`e\\f",
}

// TestLine checks that a POSIX shell reads a line as the arguments that it was made of.
func TestLine(t *testing.T) {
	argv := append([]string{"printf", `%s\0`}, hostile...)
	out, err := exec.CommandContext(t.Context(), "sh", "-c", Line(argv...)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Join(hostile, "\x00")+"\x00", string(out)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
