// Package token is the simulated server's tokenizer. It has no vocabulary file:
// text is cut by rule, and a piece is named by its hash, so that equal prefixes
// of text give equal prefixes of ids. What the simulated model generates comes
// from a vocabulary of made-up words, each one token both ways: a client that
// sends an answer back as part of the next prompt finds its blocks again.
//
// The rule: a run of up to six letters or digits is one token, with one blank
// before it where there is one; longer runs are cut every six. Each other sign is
// one token, and so is each ideograph, a run of other white space, and a control
// word of a chat template such as <|im_end|>. English prose comes to about 1.3
// tokens a word, as it does with the tokenizers of current models.
package token

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/core"
)

const (
	maxRun     = 6      // letters or digits of one token
	maxSpace   = 16     // white-space signs of one token
	maxControl = 32     // letters of a control word
	ideographs = 0x2E80 // first sign of the East Asian planes, where a sign is about a token
)

// Append appends the tokens of text to dst.
func Append(dst []core.Token, text string) []core.Token {
	for len(text) > 0 {
		n := piece(text)
		dst = append(dst, id(text[:n]))
		text = text[n:]
	}
	return dst
}

// Count returns the number of tokens of text.
func Count(text string) int {
	n := 0
	for ; len(text) > 0; n++ {
		text = text[piece(text):]
	}
	return n
}

// piece returns the length in bytes of the first token of text, which is not
// empty.
func piece(text string) int {
	c := text[0]
	switch {
	case c == ' ':
		if n := run(text[1:]); n > 0 {
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
	if n := run(text); n > 0 {
		return n
	}
	_, n := utf8.DecodeRuneInString(text)
	return n
}

// run returns the length in bytes of the letters and digits that text begins
// with, up to maxRun of them; 0 where it begins with something else.
func run(text string) int {
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

// space returns the length of the white space that text begins with, without a
// blank that belongs to a word after it.
func space(text string) int {
	n := 1
	for n < len(text) && n < maxSpace && isSpace(text[n]) {
		if text[n] == ' ' && n+1 < len(text) && run(text[n+1:]) > 0 {
			break
		}
		n++
	}
	return n
}

// control returns the length of the control word that text begins with, 0
// where there is none.
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

// id names a piece: by the vocabulary where it is a word of it, else by its
// FNV-1a hash, above the vocabulary.
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

// A word of the vocabulary is a blank and five letters: consonant, vowel,
// consonant, vowel, consonant, of 4, 2, 4, 2 and 3 bits.
const (
	consonants = "bdfghjklmnprstvz"
	vowels     = "aeio"
	endings    = "dklmnrst"
	wordLength = 6 // the blank included
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

// parse reads a word of the vocabulary.
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

// Text returns the text of a generated token; "" of one that is not of the
// vocabulary, whose text is not known.
func Text(t core.Token) string {
	if t < 0 || t >= core.VocabWords {
		return ""
	}
	return words()[int(t)*wordLength : (int(t)+1)*wordLength]
}

// Join returns the text of generated tokens.
func Join(tokens []core.Token) string {
	if len(tokens) == 1 {
		return Text(tokens[0])
	}
	var b strings.Builder
	b.Grow(len(tokens) * wordLength)
	for _, t := range tokens {
		b.WriteString(Text(t))
	}
	return b.String()
}
