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
		{Name: "max_model_len", Words: []string{"--max-model-len", "5"}, Known: true},
		{Name: "bar", Words: []string{"--bar", "1"}},
		{Words: []string{"m"}},
		{Name: "config", Words: []string{"--config", "c.yaml"}, Known: true},
		{Name: "tensor_parallel_size", Words: []string{"-tp", "2"}, Known: true},
		{Name: "foo", Words: []string{"--foo", "3"}},
		{Name: "enable_prefix_caching", Words: []string{"--no-enable-prefix-caching"}, Known: true},
		{Name: "api_key", Words: []string{"--api-key", Redacted}, Known: true},
		{Name: "max_num_seqs", Words: []string{"--max-num-seqs"}, Known: true, Lacks: true},
		{Name: "enforce_eager", Words: []string{"--enforce-eager"}, Known: true},
		{Words: []string{"extra"}},
		{Name: "compilation_config", Words: []string{"--compilation-config.mode", "3"}, Known: true},
	}
	if diff := cmp.Diff(want, c.Arguments()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
