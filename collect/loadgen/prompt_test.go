package loadgen

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// take runs an offer without a server: each request takes a second. It returns the first n
// requests, or all.
func take(t *testing.T, load Load, n int) []Intent {
	t.Helper()
	o, err := NewOffer(load)
	if err != nil {
		t.Fatal(err)
	}
	var all []Intent
	for range n {
		if _, ok := o.Due(); !ok {
			break
		}
		i := o.Next()
		all = append(all, i)
		o.Done(i.ID, Outcome{At: i.At + sec, OK: true, Text: fmt.Sprintf(" answer %d", i.ID)})
	}
	return all
}

func TestPromptsFollowTheSeed(t *testing.T) {
	load := Load{Clients: 3, PromptTokens: Between(40, 80), OutputTokens: Between(1, 9), SharedPrefixTokens: 16, Seed: 7, Together: true}
	want := take(t, load, 15)
	if diff := cmp.Diff(want, take(t, load, 15)); diff != "" {
		t.Error("the same seed gives other requests:", diff)
	}
	more := load
	more.Clients = 5
	prompts := map[string]bool{}
	for _, i := range take(t, more, 25) {
		prompts[i.Prompt] = true
	}
	for _, i := range want {
		if !prompts[i.Prompt] {
			t.Errorf("more clients change the requests of the others: %q is gone", i.Prompt)
		}
	}
	other := load
	other.Seed = 8
	if take(t, other, 1)[0].Prompt == want[0].Prompt {
		t.Error("another seed gives the same prompt")
	}
}

func TestPromptLengths(t *testing.T) {
	for _, style := range []Style{Words, Characters} {
		load := Load{
			Clients: 2, PromptTokens: Between(100, 103), OutputTokens: Between(5, 6), SharedPrefixTokens: 64,
			IgnoreEOS: true, Style: style, Together: true,
		}
		prompts, outputs := map[int]bool{}, map[int]bool{}
		for _, i := range take(t, load, 400) {
			n := len(i.Prompt)
			if style == Words {
				n = len(strings.Split(i.Prompt, " "))
			}
			if n != i.PromptTokens {
				t.Fatalf("style %d: prompt of %d tokens, said to have %d", style, n, i.PromptTokens)
			}
			prompts[n], outputs[i.MaxTokens] = true, true
			if !i.IgnoreEOS {
				t.Fatal("IgnoreEOS is lost")
			}
		}
		if diff := cmp.Diff(map[int]bool{100: true, 101: true, 102: true, 103: true}, prompts); diff != "" {
			t.Error("prompt lengths:", diff)
		}
		if diff := cmp.Diff(map[int]bool{5: true, 6: true}, outputs); diff != "" {
			t.Error("output lengths:", diff)
		}
	}
}

// A block of a prefix cache, with at least 16 tokens, must not occur twice outside the shared
// prefix.
func TestPromptsShareOnlyThePrefix(t *testing.T) {
	for _, style := range []Style{Words, Characters} {
		load := Load{Clients: 20, PromptTokens: Fixed(128), OutputTokens: Fixed(1), SharedPrefixTokens: 64, Seed: 3, Style: style, Together: true}
		prefix := string(load.prefix(nil, 0))
		begun := map[string]bool{}
		for _, i := range take(t, load, 1000) {
			rest, found := strings.CutPrefix(i.Prompt, prefix)
			if !found {
				t.Fatalf("prompt begins %q", i.Prompt[:64])
			}
			block := rest[:16]
			if style == Words {
				block = strings.Join(strings.Fields(rest)[:16], " ")
			}
			if begun[block] {
				t.Fatalf("two prompts continue with %q", block)
			}
			begun[block] = true
			for _, c := range i.Prompt {
				if c < ' ' || c > '~' {
					t.Fatalf("character %q is not printable ASCII", c)
				}
			}
		}
	}
}
