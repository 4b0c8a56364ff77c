package optrace

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestExplainWords holds that each word leads to one meaning among those of traces.
func TestExplainWords(t *testing.T) {
	of := map[string]string{}
	add := func(name string, also []string) {
		for _, word := range append([]string{name}, also...) {
			word = strings.ToLower(word)
			if of[word] != "" {
				t.Errorf("%q leads to %q and to %q", word, of[word], name)
			}
			of[word] = name
		}
	}
	for _, e := range ExplainWords() {
		add(e.Name, e.Also)
		if len(e.Meaning) == 0 {
			t.Errorf("%s has no meaning", e.Name)
		}
		for _, line := range e.Meaning {
			if strings.Contains(line, "%!") || line == "" {
				t.Errorf("%s: %q", e.Name, line)
			}
		}
	}
}

// TestEveryFindingIsExplained holds that each id which a check gives has its condition,
// meaning and next step, and that no other is explained.
func TestEveryFindingIsExplained(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	id := regexp.MustCompile(`Finding\{ID: "([a-z-]+)"`)
	found := map[string]bool{}
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), "finding_") {
			continue
		}
		text, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range id.FindAllStringSubmatch(string(text), -1) {
			found[m[1]] = false
		}
	}
	if len(found) != len(checks) {
		t.Errorf("%d ids in the files, %d checks", len(found), len(checks))
	}
	for _, e := range findingWords() {
		if _, is := found[e.Name]; !is {
			t.Errorf("%s is explained and never found", e.Name)
		}
		found[e.Name] = true
		text := strings.Join(e.Meaning, "\n")
		for _, part := range []string{"Condition: ", "Meaning: ", "Next: "} {
			if !strings.Contains(text, part) {
				t.Errorf("%s has no %q", e.Name, part)
			}
		}
	}
	for name, explained := range found {
		if !explained {
			t.Errorf("%s is not explained", name)
		}
	}
}

// TestWordsOfTheScreenAreExplained holds that what the screen and the report say without
// explaining it has a meaning.
func TestWordsOfTheScreenAreExplained(t *testing.T) {
	known := map[string]bool{}
	for _, e := range ExplainWords() {
		for _, word := range append([]string{e.Name}, e.Also...) {
			known[word] = true
		}
	}
	for _, word := range []string{"operator", "tensor", "sched", "barriers", "graph", "wake-up", "expert", "splits", "interference", "levels", "lane", "lanes",
		"tok/s", "time to first token", "first token", "TTFT", "between calls", "moved", "call", "unknown", "coverage", "observer", "partial", "hook",
		"of roof", "roof share", "type", "copies", "leaves", "views", "DAG", "switches", "lost", "skew", "flash_attn_ext", "best that was seen", "waiting", "of median", "start", "synchronisation"} {
		if !known[word] {
			t.Errorf("explain does not know %q", word)
		}
	}
	for _, w := range words {
		if !known[w.name] {
			t.Errorf("explain does not know the level %q", w.name)
		}
	}
}
