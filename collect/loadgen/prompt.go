package loadgen

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// purpose names a stream of random numbers. Each draw of each request has its own stream, so that
// an additional draw does not change the others, and requests do not depend on each other.
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

// stream returns the random numbers of a purpose and its keys, such as client and turn.
func stream(seed uint64, p purpose, keys ...uint64) *rand.Rand {
	h := uint64(p)
	for _, key := range keys {
		h = mix(h ^ key)
	}
	return rand.New(rand.NewPCG(seed, h))
}

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), a bijection that maps
// neighbouring keys to unrelated states.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// units returns how many words or characters have a length in tokens. Parts of a prompt use the
// difference of two results, so that rounding errors do not add up.
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

// pieces counts words of up to six letters or digits, and single signs. This gives about 1.3 per
// word of prose, close to byte-pair tokenizers.
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

// signs are the printable ASCII characters other than letters, digits and the blank.
const signs = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

// write appends units of text, words or characters.
func (l *Load) write(text []byte, from *rand.Rand, units int) []byte {
	if l.Style == Characters {
		return appendCharacters(text, from, units)
	}
	return appendWords(text, from, units)
}

// appendWords appends n words, with a blank before each except the first of a text.
func appendWords(text []byte, from *rand.Rand, n int) []byte {
	bits, left := uint64(0), 0
	for range n {
		if left == 0 {
			bits, left = from.Uint64(), 64/vocabularyBits
		}
		if len(text) > 0 {
			text = append(text, ' ')
		}
		text = append(text, Vocabulary[bits&(1<<vocabularyBits-1)]...)
		bits >>= vocabularyBits
		left--
	}
	return text
}

// wordLetters is the length of random words in text of Characters: without blanks, a tokenizer that
// splits at blanks would see one endless word.
const wordLetters = 5

// appendCharacters appends n characters of random words.
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

// bytesPerUnit estimates the bytes of a word or character, to allocate enough at once.
func (l *Load) bytesPerUnit() int {
	if l.Style == Characters {
		return 1
	}
	return 6
}

// prefix appends the shared prefix of a group.
func (l *Load) prefix(text []byte, group int) []byte {
	return l.write(text, stream(l.Seed, forPrefixText, uint64(group)), l.units(l.SharedPrefixTokens))
}

// pick draws an index with probabilities from cumulative weights.
func pick(from *rand.Rand, sums []float64) int {
	at := from.Float64() * sums[len(sums)-1]
	i, _ := slices.BinarySearchFunc(sums, at, func(sum, at float64) int {
		if sum > at {
			return 1
		}
		return -1
	})
	return min(i, len(sums)-1)
}
