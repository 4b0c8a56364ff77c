package probe

import (
	"math"
	"math/rand/v2"
	"strings"
)

// purpose names a stream of random numbers. Each draw of each request has one of
// its own, so that another consumer shifts none of the others and a request does
// not depend on what was drawn before it.
type purpose uint64

const (
	forArrival purpose = iota + 1
	forStagger
	forThink
	forTurns
	forPromptLength
	forOutputLength
	forText
	forGroup
	forPrefixText
	forBlockText
	forCancel
	forModel
	forRetry
)

// stream returns the random numbers of a purpose and what it is drawn for.
func stream(seed uint64, p purpose, of ...uint64) *rand.Rand {
	h := uint64(p)
	for _, key := range of {
		h = mix(h ^ key)
	}
	return rand.New(rand.NewPCG(seed, h))
}

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), a
// bijection: neighbouring keys shall not give neighbouring states.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// units returns how many words or characters make a length in tokens. Parts of a
// prompt take the difference of two, so that their rounding does not add up.
func (l *Load) units(tokens int) int {
	if l.Style == Characters {
		return tokens
	}
	return int(math.Round(float64(tokens) / l.tokensPerWord()))
}

// tokensIn estimates the tokens of a text of the load's style, or of prose.
func (l *Load) tokensIn(text string) int {
	if l.Style == Characters {
		return len(text)
	}
	return int(math.Round(float64(pieces(text)) * l.tokensPerWord()))
}

// pieces counts words of up to six letters or digits and single signs, which
// comes to about 1.3 for a word of prose: near to what byte-pair tokenizers make.
func pieces(text string) int {
	n, run := 0, 0
	for _, r := range text {
		switch {
		case r == ' ' || r == '\n' || r == '\t' || r == '\r':
			run = 0
		case strings.ContainsRune(signs, r):
			n++
			run = 0
		default:
			if run%6 == 0 {
				n++
			}
			run++
		}
	}
	return n
}

// signs are the printable ASCII characters that are no letter, digit or blank.
const signs = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

// write appends units of text, words or characters.
func (l *Load) write(text []byte, from *rand.Rand, units int) []byte {
	if l.Style == Characters {
		return appendCharacters(text, from, units)
	}
	return appendWords(text, from, units)
}

// appendWords adds n words, with a blank before each but the first of a text.
func appendWords(text []byte, from *rand.Rand, n int) []byte {
	bits, left := uint64(0), 0
	for range n {
		if left == 0 {
			bits, left = from.Uint64(), 64/vocabularyBits
		}
		if len(text) > 0 {
			text = append(text, ' ')
		}
		text = append(text, vocabulary[bits&(1<<vocabularyBits-1)]...)
		bits >>= vocabularyBits
		left--
	}
	return text
}

// wordLetters is the length of a word of invented characters: word-like text
// keeps tokenizers that split at blanks from meeting one endless word.
const wordLetters = 5

// appendCharacters adds n characters of invented words.
func appendCharacters(text []byte, from *rand.Rand, n int) []byte {
	for i := range n {
		if i%(wordLetters+1) == wordLetters {
			text = append(text, ' ')
		} else {
			text = append(text, byte('a'+from.IntN(26)))
		}
	}
	return text
}

// bytesPerUnit is a guess that saves growing.
func (l *Load) bytesPerUnit() int {
	if l.Style == Characters {
		return 1
	}
	return 6
}

// prefix is the text of a group of prompts.
func (l *Load) prefix(text []byte, group int) []byte {
	return l.write(text, stream(l.Seed, forPrefixText, uint64(group)), l.units(l.SharedPrefixTokens))
}

// group draws the group of a conversation.
func (l *Load) group(from *rand.Rand, weights []float64) int {
	if l.PrefixZipf == 0 {
		return from.IntN(l.groups())
	}
	return pick(from, weights)
}

// zipf returns the running sums of the groups' weights; nil where all are alike.
func (l *Load) zipf() []float64 {
	if l.PrefixZipf == 0 || l.SharedPrefixTokens == 0 {
		return nil
	}
	sums := make([]float64, l.groups())
	sum := 0.0
	for i := range sums {
		sum += math.Pow(float64(i+1), -l.PrefixZipf)
		sums[i] = sum
	}
	return sums
}

// pick draws an index by running sums of weights.
func pick(from *rand.Rand, sums []float64) int {
	at := from.Float64() * sums[len(sums)-1]
	low, high := 0, len(sums)-1
	for low < high {
		if middle := (low + high) / 2; sums[middle] > at {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}
