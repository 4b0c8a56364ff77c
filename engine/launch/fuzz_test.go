package launch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// seed adds the command lines of the recorded parser runs, as NUL-separated
// words with a config file.
func seed(f *testing.F) {
	data, err := os.ReadFile("testdata/vllm-0.32.0.json")
	if err != nil {
		f.Fatal(err)
	}
	var all []recorded
	if err := json.Unmarshal(data, &all); err != nil {
		f.Fatal(err)
	}
	for _, r := range all {
		config := ""
		if r.Config != nil {
			config = *r.Config
		}
		f.Add(strings.Join(append([]string{"vllm"}, r.Argv...), "\x00"), config)
	}
	f.Add("sh\x00-c\x00A=1 vllm serve \"$M\" --port ${P:-1} >x 2>&1 & # c", commented)
	f.Add("docker\x00run\x00vllm/vllm-openai:x\x00--model\x00M", "a: &a {b: *a}\n")
	f.Add("--model\x00M\x00--api-key\x00s3cret-value\x00t", "<<: [*x]\n")
}

// FuzzParse checks that any argument vector and config file are read without a
// panic, come back byte for byte, are edited where asked and nowhere else, and
// hide their secrets.
func FuzzParse(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, line, config string) {
		argv := strings.Split(line, "\x00")
		c, err := Parse(argv, nil, []byte(config))
		if err != nil {
			return
		}
		if !slices.Equal(c.Argv(), argv) {
			t.Fatalf("unedited argument vector differs:\n%q\n%q", argv, c.Argv())
		}
		if config != "" && c.ConfigPath() != "" && !bytes.Equal(c.File(), []byte(config)) {
			t.Fatalf("unedited config file differs:\n%q\n%q", config, c.File())
		}
		for _, name := range c.items.names() {
			_, _, _ = c.Value(name)
		}
		_ = fmt.Sprintf("%+v %v", c, c.Notes())
		for _, edit := range []struct{ flag, value string }{{"max_num_seqs", "4321"}, {"enable_prefix_caching", "false"}, {"hf_overrides", `{"a":"b c"}`}} {
			checkEdit(t, c, edit.flag, edit.value)
		}
		secret := c.Override("hf_token", "fuzzed.secret.value")
		if strings.Contains(secret.String(), "fuzzed.secret.value") {
			t.Fatalf("a secret shows: %s", secret)
		}
	})
}

func checkEdit(t *testing.T, c *Config, flag, value string) {
	edits := []*Config{c.With(flag, value)}
	if !slices.ContainsFunc(c.items, func(it item) bool { return it.source == ConfigFile && it.name == flag && len(it.path) > 0 }) {
		edits = append(edits, c.Override(flag, value))
	}
	for _, d := range edits {
		if got, _, ok := d.Value(flag); !ok || got != value {
			t.Fatalf("%s set to %s reads back as %q, %v:\n%q\n%q", flag, value, got, ok, d.Argv(), d.File())
		}
		again, err := Parse(d.Argv(), nil, d.File())
		if err != nil {
			t.Fatalf("the edited line does not parse: %v\n%q", err, d.Argv())
		}
		if got, _, _ := again.Value(flag); got != value {
			t.Fatalf("%s set to %s is %q when parsed again:\n%q", flag, value, got, d.Argv())
		}
		for _, change := range Diff(c, again) {
			head, _, _ := strings.Cut(change.Name, ".")
			if vllm.kindOf(head) == kindUnknown {
				continue // how many words it takes is a guess, which its neighbours change
			}
			if vllm.kindOf(head) == kindValue && change.From == "true" {
				continue // it lacked its value, a line that vLLM refuses, and took a neighbour's
			}
			if change.Name != flag && !strings.HasPrefix(change.Name, flag+".") {
				t.Fatalf("setting %s changed %v:\n%q\n%q", flag, change, c.Argv(), d.Argv())
			}
		}
	}
	if _, from, ok := c.Without(flag).Value(flag); ok && from == Cmdline {
		t.Fatalf("%s is still there after its removal: %q", flag, c.Without(flag).Argv())
	}
}

// FuzzSplit checks that a script is cut into commands without losing a byte, and
// that quoting is undone by splitting.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{"", "a b", "a 'b c' \"d $E\" `f` $(g (h)) ${i:-j}", "x >y 2>&1 <z && w; # v\n u\\\n t &", "'", "\"", "$", "${", "\\", "a<<E\nE\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		cut, _ := split(s, nil)
		if got := join(cut); got != s {
			t.Fatalf("%q came back as %q", s, got)
		}
		segs, _ := split("x "+Quote(s), nil)
		if last := segs[len(segs)-1].ws; len(last) != 2 || last[1].text != s || last[1].opaque {
			t.Fatalf("%q quoted as %s is split into %v", s, Quote(s), last)
		}
	})
}
