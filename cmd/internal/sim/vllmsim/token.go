package vllmsim

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
)

// The tokenizer of the simulated server has no vocabulary file: text is split by a rule,
// and the ID of a piece is its hash, so that equal prefixes of text have equal prefixes of IDs. Generated
// text consists of made-up words from a small vocabulary, each of which is one token in both directions:
// if a client sends an answer back as part of the next prompt, the cached blocks are found.
//
// The rule: a run of up to six letters or digits is one token, including a preceding blank; longer runs
// are split every six. Every other character, ideograph, run of other white space, and control word of a
// chat template such as <|im_end|> is one token. English prose has about 1.3 tokens per word, as with the
// tokenizers of current models.

const (
	maxRun     = 6      // letters or digits of one token
	maxSpace   = 16     // white-space characters of one token
	maxControl = 32     // letters of a control word
	ideographs = 0x2E80 // first character of the East Asian blocks, where a character is about a token
)

// AppendTokens appends the tokens of text to dst.
func AppendTokens(dst []core.Token, text string) []core.Token {
	for len(text) > 0 {
		n := piece(text)
		dst = append(dst, id(text[:n]))
		text = text[n:]
	}
	return dst
}

// piece returns the length in bytes of the first token of text, which must not be empty.
func piece(text string) int {
	c := text[0]
	switch {
	case c == ' ':
		if n := runLength(text[1:]); n > 0 {
			return 1 + n
		}
		return space(text)
	case isSpace(c):
		return space(text)
	case c == '<':
		if n := control(text); n > 0 {
			return n
		}
		return 1
	}
	if n := runLength(text); n > 0 {
		return n
	}
	_, n := utf8.DecodeRuneInString(text)
	return n
}

// runLength returns the length in bytes of the letters and digits at the beginning of text, at most maxRun of
// them; 0 if there are none.
func runLength(text string) int {
	n := 0
	for range maxRun {
		if n == len(text) {
			break
		}
		if c := text[n]; c < utf8.RuneSelf {
			if !isWord(c) {
				break
			}
			n++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[n:])
		if r >= ideographs || r == utf8.RuneError || !unicode.In(r, unicode.L, unicode.M, unicode.Nd) {
			break
		}
		n += size
	}
	return n
}

// space returns the length in bytes of the white space at the beginning of text, without a blank that
// belongs to the following word.
func space(text string) int {
	n := 1
	for n < len(text) && n < maxSpace && isSpace(text[n]) {
		if text[n] == ' ' && n+1 < len(text) && runLength(text[n+1:]) > 0 {
			break
		}
		n++
	}
	return n
}

// control returns the length in bytes of the control word at the beginning of text, 0 if there is none.
func control(text string) int {
	if !strings.HasPrefix(text, "<|") {
		return 0
	}
	for n := 2; n < len(text) && n <= 2+maxControl; n++ {
		if c := text[n]; c == '|' {
			if n > 2 && n+1 < len(text) && text[n+1] == '>' {
				return n + 2
			}
			return 0
		} else if c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return 0
		}
	}
	return 0
}

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\v' || c == '\f'
}

// id returns the ID of a piece: its number in the vocabulary, or else its FNV-1a hash, above the numbers of
// the vocabulary.
func id(piece string) core.Token {
	if t, ok := parse(piece); ok {
		return t
	}
	const (
		offset = 14695981039346656037
		prime  = 1099511628211
		room   = 1<<31 - core.VocabWords
	)
	h := uint64(offset)
	for i := range len(piece) {
		h = (h ^ uint64(piece[i])) * prime
	}
	return core.Token(core.VocabWords + h%room)
}

// A word of the vocabulary is a blank and five letters: consonant, vowel, consonant, vowel, consonant, with
// 4, 2, 4, 2 and 3 bits.
const (
	consonants = "bdfghjklmnprstvz"
	vowels     = "aeio"
	endings    = "dklmnrst"
	wordLength = 6 // including the blank
)

// words is the text of the vocabulary, word after word.
var words = sync.OnceValue(func() string {
	var b strings.Builder
	b.Grow(core.VocabWords * wordLength)
	for t := range core.VocabWords {
		b.WriteByte(' ')
		b.WriteByte(consonants[t>>11&15])
		b.WriteByte(vowels[t>>9&3])
		b.WriteByte(consonants[t>>5&15])
		b.WriteByte(vowels[t>>3&3])
		b.WriteByte(endings[t&7])
	}
	return b.String()
})

// parse returns the token of a word of the vocabulary; false for other pieces.
func parse(piece string) (core.Token, bool) {
	if len(piece) != wordLength || piece[0] != ' ' {
		return 0, false
	}
	a, b := strings.IndexByte(consonants, piece[1]), strings.IndexByte(vowels, piece[2])
	c, d := strings.IndexByte(consonants, piece[3]), strings.IndexByte(vowels, piece[4])
	e := strings.IndexByte(endings, piece[5])
	if a < 0 || b < 0 || c < 0 || d < 0 || e < 0 {
		return 0, false
	}
	return core.Token(a<<11 | b<<9 | c<<5 | d<<3 | e), true
}

// TokenText returns the text of a generated token; "" for a token that is not in the vocabulary.
func TokenText(t core.Token) string {
	if t < 0 || t >= core.VocabWords {
		return ""
	}
	return words()[int(t)*wordLength : (int(t)+1)*wordLength]
}

// JoinTokens returns the text of generated tokens.
func JoinTokens(tokens []core.Token) string {
	if len(tokens) == 1 {
		return TokenText(tokens[0])
	}
	var b strings.Builder
	b.Grow(len(tokens) * wordLength)
	for _, t := range tokens {
		b.WriteString(TokenText(t))
	}
	return b.String()
}
