package launch

import (
	"strings"
	"testing"
)

func TestWithInline(t *testing.T) {
	for _, c := range []struct {
		name, command, variable, value, want string // want "" is refused
	}{
		{"assignment", "VLLM_X=1 vllm serve m", "VLLM_X", "2", "VLLM_X=2 vllm serve m"},
		{"quoted", "VLLM_X=1 vllm serve m", "VLLM_X", "a'b c", `VLLM_X='a'\''b c' vllm serve m`},
		{"env", "env A=1 VLLM_X=1 vllm serve m", "VLLM_X", "2", "env A=1 VLLM_X=2 vllm serve m"},
		{"the last wins", "VLLM_X=0 env VLLM_X=1 vllm serve m", "VLLM_X", "2", "VLLM_X=0 env VLLM_X=2 vllm serve m"},
		{"container", "docker run -e VLLM_X=1 --env=B=2 vllm/vllm-openai:v0.11.0 --model m", "B", "3", "docker run -e VLLM_X=1 --env=B=3 vllm/vllm-openai:v0.11.0 --model m"},
		{"script within", "VLLM_X=1 sh -c 'VLLM_X=2 vllm serve m'", "VLLM_X", "3", "VLLM_X=1 sh -c 'VLLM_X=3 vllm serve m'"},
		{"around a script", "VLLM_X=1 sh -c 'vllm serve m'", "VLLM_X", "3", "VLLM_X=3 sh -c 'vllm serve m'"},
		{"argument of the server", "vllm serve m VLLM_X=1", "VLLM_X", "3", ""},
		{"part of a name", "MY_VLLM_X=1 vllm serve m", "VLLM_X", "3", ""},
		{"left out", "VLLM_X=1 vllm serve m", "VLLM_X", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, err := ParseCommand(c.command, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			after, ok := before.WithInline(c.variable, c.value)
			if ok != (c.want != "") {
				t.Fatalf("ok = %v", ok)
			}
			if before.Shell() != c.command {
				t.Errorf("the original became %q", before.Shell())
			}
			if !ok {
				return
			}
			if got := after.Shell(); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if got, _ := after.Variable(c.variable); got != c.value {
				t.Errorf("the variable reads as %q", got)
			}
		})
	}
}

func TestAPIKey(t *testing.T) {
	for _, c := range []struct {
		name, command, file string
		env                 map[string]string
		want                string
	}{
		{"none", "vllm serve m", "", nil, ""},
		{"flag", "vllm serve m --api-key sk-1 sk-2", "", map[string]string{"VLLM_API_KEY": "sk-3"}, "sk-1"},
		{"variable", "vllm serve m", "", map[string]string{"VLLM_API_KEY": "sk-3"}, "sk-3"},
		{"file", "vllm serve m --config c.yaml", "api-key: sk-4\n", nil, "sk-4"},
	} {
		config, err := ParseCommand(c.command, c.env, []byte(c.file))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := config.APIKey(); got != c.want || ok != (c.want != "") {
			t.Errorf("%s: key %q, %v, want %q", c.name, got, ok, c.want)
		}
	}
}

func TestHide(t *testing.T) {
	c, err := ParseCommand("vllm serve m --api-key my-own-secret", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := c.Hide("key my-own-secret refused; token=hf_abcdefghijklmnopqrstuvwx")
	if strings.Contains(got, "my-own-secret") || strings.Contains(got, "hf_abc") || !strings.Contains(got, "refused") {
		t.Errorf("hidden: %q", got)
	}
	if got := Hide("ValueError: slots 4"); got != "ValueError: slots 4" {
		t.Errorf("hidden: %q", got)
	}
}
