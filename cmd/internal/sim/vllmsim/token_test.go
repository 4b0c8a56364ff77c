package vllmsim

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
)

// cut returns the pieces of text.
func cut(text string) []string {
	var out []string
	for len(text) > 0 {
		n := piece(text)
		out = append(out, text[:n])
		text = text[n:]
	}
	return out
}

func TestPieces(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"words of the load generator", "the quick brown", []string{"the", " quick", " brown"}},
		{"a long word is cut every six", " internationalization", []string{" intern", "ationa", "lizati", "on"}},
		{"signs stand alone", "It's 12.5%, ok?", []string{"It", "'", "s", " 12", ".", "5", "%", ",", " ok", "?"}},
		{"only the last blank belongs to the word", "a   b", []string{"a", "  ", " b"}},
		{"blank before a sign", "a - b", []string{"a", " ", "-", " b"}},
		{"lines", "x\n\n  y", []string{"x", "\n\n ", " y"}},
		{"trailing space", "x  ", []string{"x", "  "}},
		{"control words", "<|im_start|>user\nhi<|im_end|>", []string{"<|im_start|>", "user", "\n", "hi", "<|im_end|>"}},
		{"no control words", "<|><||a|><|A|><|x", []string{"<", "|", ">", "<", "|", "|", "a", "|", ">", "<", "|", "A", "|", ">", "<", "|", "x"}},
		{"accents are letters", "Größe naïveté", []string{"Größe", " naïvet", "é"}},
		{"ideographs stand alone", "東京 tower", []string{"東", "京", " tower"}},
		{"bytes that are no text", "a\xff\xfeb", []string{"a", "\xff", "\xfe", "b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := cut(tt.text)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("pieces (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProseComesToAboutFourTokensForThreeWords(t *testing.T) {
	const prose = `A server that answers many people at once keeps what it has read of every conversation in memory.
When that memory is full, someone has to wait, and the operator wonders whether another machine would help. Measuring
first is cheaper: usually the batch is small, the prompts repeat themselves, or an old setting was never reconsidered.`
	words := len(strings.Fields(prose))
	if got := float64(len(cut(prose))) / float64(words); got < 1.2 || got > 1.5 {
		t.Errorf("tokens per word = %.2f, want 1.2 to 1.5", got)
	}
}

func TestGeneratedTextComesBackAsTheSameTokens(t *testing.T) {
	all := make([]core.Token, core.VocabWords)
	for i := range all {
		all[i] = core.Token(i)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	got := AppendTokens(nil, JoinTokens(all))
	if diff := cmp.Diff(all, got); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
}

func FuzzAppend(f *testing.F) {
	for _, s := range []string{"", " ", "a  b", "<|x|>", "é\xff 東", strings.Repeat(" \n", 40)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		pieces := cut(text)
		if got := strings.Join(pieces, ""); got != text {
			t.Fatalf("pieces make %q, want %q", got, text)
		}
		tokens := AppendTokens(nil, text)
		if len(tokens) != len(pieces) {
			t.Fatalf("%d tokens, want %d", len(tokens), len(pieces))
		}
		for i, id := range tokens {
			if id < 0 {
				t.Fatalf("negative id of %q", pieces[i])
			}
			if s := TokenText(id); s != "" && s != pieces[i] {
				t.Fatalf("id %d of %q reads %q", id, pieces[i], s)
			}
		}
	})
}
