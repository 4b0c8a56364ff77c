package launch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArguments(t *testing.T) {
	c, err := Parse([]string{"vllm", "serve", "m", "--config", "c.yaml", "-tp", "2", "--foo", "3", "--no-enable-prefix-caching",
		"--api-key", "k1", "--max-num-seqs", "--enforce-eager", "extra", "--compilation-config.mode=3"}, nil, []byte("max-model-len: 5\nbar: 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Argument{
		{Name: "max_model_len", Words: []string{"--max-model-len", "5"}, From: ConfigFile, Known: true},
		{Name: "bar", Words: []string{"--bar", "1"}, From: ConfigFile},
		{Words: []string{"m"}, From: Cmdline},
		{Name: "config", Words: []string{"--config", "c.yaml"}, From: Cmdline, Known: true},
		{Name: "tensor_parallel_size", Words: []string{"-tp", "2"}, From: Cmdline, Known: true},
		{Name: "foo", Words: []string{"--foo", "3"}, From: Cmdline},
		{Name: "enable_prefix_caching", Words: []string{"--no-enable-prefix-caching"}, From: Cmdline, Known: true},
		{Name: "api_key", Words: []string{"--api-key", Redacted}, From: Cmdline, Known: true},
		{Name: "max_num_seqs", Words: []string{"--max-num-seqs"}, From: Cmdline, Known: true, Lacks: true},
		{Name: "enforce_eager", Words: []string{"--enforce-eager"}, From: Cmdline, Known: true},
		{Words: []string{"extra"}, From: Cmdline},
		{Name: "compilation_config", Words: []string{"--compilation-config.mode", "3"}, From: Cmdline, Known: true},
	}
	if diff := cmp.Diff(want, c.Arguments()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
