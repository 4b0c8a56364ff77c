package loop

import (
	"testing"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/facts"
)

// started is a configuration with these settings, and a launch command.
func started(command string, settings ...string) configuration {
	c := configuration{settings: map[string]facts.Setting{}, command: "vllm serve m " + command}
	for i := 0; i+1 < len(settings); i += 2 {
		c.settings[settings[i]] = facts.Setting{Value: settings[i+1], Source: engine.FromCmdline}
	}
	return c
}

func TestNoticed(t *testing.T) {
	four, more := started("", "max_num_seqs", "4"), started("", "max_num_seqs", "32")
	advised := []engine.Change{{Flag: "--max-num-seqs", From: "4", To: "32"}}
	for _, c := range []struct {
		name                string
		kept, running, next configuration
		advised             []engine.Change
		want                Noticed
		changes             string
	}{
		{"as recommended", four, four, more, advised, AsRecommended, "--max-num-seqs 4 → 32"},
		{"without a recommendation", four, four, more, nil, SomethingElse, "--max-num-seqs 4 → 32"},
		{"the same", four, four, started("", "max_num_seqs", "4"), advised, SameSettings, ""},
		{"only the port", four, four, started("--port 8001", "max_num_seqs", "4"), advised, SameSettings, "--port unset → 8001"},
		{"undone", four, more, four, nil, Undone, ""},
		{"taken out", four, four, started(""), advised, SomethingElse, "--max-num-seqs 4 left out"},
		{"a number spelled otherwise", started("", "gpu_memory_utilization", "0.9"), started("", "gpu_memory_utilization", "0.9"),
			started("", "gpu_memory_utilization", "0.90"), nil, SameSettings, ""},
		{"a switch by leaving out its negation", started("", "enable_prefix_caching", "false"), started("", "enable_prefix_caching", "false"), started(""),
			[]engine.Change{{Flag: "--enable-prefix-caching", From: "off", To: "on"}}, AsRecommended, "--no-enable-prefix-caching left out"},
		{"a switch that is left out", started("", "enforce_eager", "true"), started("", "enforce_eager", "true"), started(""),
			[]engine.Change{{Flag: "--enforce-eager", From: "on"}}, AsRecommended, "--enforce-eager left out"},
		{"a switch that is switched off instead", started("", "enforce_eager", "true"), started("", "enforce_eager", "true"), started("", "enforce_eager", "false"),
			[]engine.Change{{Flag: "--enforce-eager", From: "on"}}, AsRecommended, "--enforce-eager off"},
		{"a value that is left out", started("", "num_gpu_blocks_override", "64"), started("", "num_gpu_blocks_override", "64"), started(""),
			[]engine.Change{{Flag: "--num-gpu-blocks-override", From: "64"}}, AsRecommended, "--num-gpu-blocks-override 64 left out"},
		{"no launch", configuration{reported: []reportedSetting{{"block_size", "16"}}}, configuration{}, configuration{reported: []reportedSetting{{"block_size", "32"}}}, nil, Unreadable, "block_size 16 → 32"},
		{"a command that is no vLLM", configuration{settings: map[string]facts.Setting{}, command: "a 'b"}, configuration{settings: map[string]facts.Setting{}, command: "a 'b"},
			configuration{settings: map[string]facts.Setting{}, command: "c"}, nil, SameSettings, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := classifyRestart(c.kept, c.running, c.next, c.advised)
			if got.Noticed != c.want || engine.JoinChanges(got.changes) != c.changes {
				t.Errorf("%q (%s), want %q (%s)", got.Noticed, engine.JoinChanges(got.changes), c.want, c.changes)
			}
		})
	}
}
