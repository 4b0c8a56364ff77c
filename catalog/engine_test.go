package catalog

import "testing"

// TestEveryEngineNamesTheSettings checks that what rooftop proposes to change has one flag on each engine, and
// that the flag leads back to the setting.
func TestEveryEngineNamesTheSettings(t *testing.T) {
	for _, g := range Engines() {
		if g.Name == "" || len(g.Families) == 0 || len(g.Metrics()) == 0 {
			t.Errorf("%s is incomplete", g.ID)
		}
		for _, setting := range []string{"max_num_seqs", "num_gpu_blocks_override", "enable_prefix_caching"} {
			flag := g.Flag(setting)
			back, inverted := SettingOf(flag)
			_, off, ok := g.Argument(setting)
			if !ok || back != setting || inverted != off {
				t.Errorf("%s: %s is %q, which is %s (inverted %v, want %v)", g.ID, setting, flag, back, inverted, off)
			}
		}
	}
}

func TestSpell(t *testing.T) {
	for _, tt := range []struct {
		engine, text, want string
		holds              bool
	}{
		{VLLM, "raise --max-num-seqs", "raise --max-num-seqs", true},
		{"sglang", "raise --max-num-seqs to 32; restart vLLM", "raise --max-running-requests to 32; restart SGLang", true},
		{"sglang", "512 blocks by --num-gpu-blocks-override", "512 tokens by --max-total-tokens", true},
		{"sglang", "requests were preempted", "requests were retracted", true},
		{"sglang", "--tensor-parallel-size with more GPUs", "--tensor-parallel-size with more GPUs", true},
		{"sglang", "--kv-offloading-size keeps evicted prefixes", " keeps evicted prefixes", false},
		{"sglang", "give -m N; --duration 2m", "give -m N; --duration 2m", true},
	} {
		got, holds := EngineOf(tt.engine).Spell(tt.text)
		if got != tt.want || holds != tt.holds {
			t.Errorf("%s: %q, %v; want %q, %v", tt.engine, got, holds, tt.want, tt.holds)
		}
	}
}

func TestCanonicalSettings(t *testing.T) {
	g := EngineOf("sglang")
	for _, tt := range []struct{ name, value, setting, want string }{
		{"max_running_requests", "4", "max_num_seqs", "4"},
		{"disable_radix_cache", "true", "enable_prefix_caching", "false"},
		{"schedule_conservativeness", "0.3", "schedule_conservativeness", "0.3"},
	} {
		if setting, value := g.Canonical(tt.name, tt.value); setting != tt.setting || value != tt.want {
			t.Errorf("%s=%s is %s=%s, want %s=%s", tt.name, tt.value, setting, value, tt.setting, tt.want)
		}
	}
	if v, _, ok := g.Default("enable_prefix_caching", "0.5.23", Hardware{}); !ok || v != "true" {
		t.Errorf("the radix cache is %q by default, %v", v, ok)
	}
	if !ChangesAnswers("--quantization") || ChangesAnswers("--max-running-requests") || ChangesAnswers("--schedule-conservativeness") {
		t.Error("which flags change answers")
	}
}
