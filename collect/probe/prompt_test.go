package probe

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// write returns the first n requests of each client of a load.
func write(load Load, n int) [][]Request {
	all := make([][]Request, load.Clients)
	for i := range all {
		author := load.author(i, load.sharedPrefix())
		for range n {
			all[i] = append(all[i], author.next())
		}
	}
	return all
}

func TestPromptsFollowTheSeed(t *testing.T) {
	load := Load{Clients: 3, PromptTokens: Range{40, 80}, OutputTokens: Range{1, 9}, SharedPrefixTokens: 16, Seed: 7}
	want := write(load, 5)
	ignore := cmpopts.IgnoreFields(Request{}, "OnChunk")
	if diff := cmp.Diff(want, write(load, 5), ignore); diff != "" {
		t.Error("the same seed gives other requests:", diff)
	}
	more := load
	more.Clients = 5
	if diff := cmp.Diff(want, write(more, 5)[:3], ignore); diff != "" {
		t.Error("more clients change the requests of the others:", diff)
	}
	other := load
	other.Seed = 8
	if write(other, 1)[0][0].Prompt == want[0][0].Prompt {
		t.Error("another seed gives the same prompt")
	}
}

func TestPromptLengths(t *testing.T) {
	load := Load{Clients: 2, PromptTokens: Range{100, 103}, OutputTokens: Range{5, 6}, SharedPrefixTokens: 64, IgnoreEOS: true}
	prompts, outputs := map[int]bool{}, map[int]bool{}
	for _, requests := range write(load, 200) {
		for _, r := range requests {
			prompts[len(r.Prompt)], outputs[r.MaxTokens] = true, true
			if !r.IgnoreEOS {
				t.Fatal("IgnoreEOS is lost")
			}
		}
	}
	if diff := cmp.Diff(map[int]bool{100: true, 101: true, 102: true, 103: true}, prompts); diff != "" {
		t.Error("prompt lengths:", diff)
	}
	if diff := cmp.Diff(map[int]bool{5: true, 6: true}, outputs); diff != "" {
		t.Error("output lengths:", diff)
	}
}

func TestPromptsShareOnlyThePrefix(t *testing.T) {
	load := Load{Clients: 20, PromptTokens: Fixed(128), OutputTokens: Fixed(1), SharedPrefixTokens: 64, Seed: 3}
	prefix := load.sharedPrefix()
	if len(prefix) != 64 {
		t.Fatalf("prefix of %d characters, want 64", len(prefix))
	}
	begun := map[string]bool{}
	for _, requests := range write(load, 50) {
		for _, r := range requests {
			rest, found := strings.CutPrefix(r.Prompt, prefix)
			if !found {
				t.Fatalf("prompt begins %q", r.Prompt[:64])
			}
			// A cache block of 16 tokens, the smallest in use, is already unique.
			if begun[rest[:16]] {
				t.Fatalf("two prompts go on with %q", rest[:16])
			}
			begun[rest[:16]] = true
			for _, c := range r.Prompt {
				if c < ' ' || c > '~' {
					t.Fatalf("character %q is no printable ASCII", c)
				}
			}
		}
	}
}
