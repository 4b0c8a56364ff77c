package probe

import "math/rand/v2"

// Streams of random numbers, one for each purpose, so that another consumer
// shifts none of the others.
const (
	streamPrefix = iota + 1
	streamLength
	streamText
)

// wordLetters is the length of a word of invented text: word-like text keeps
// tokenizers that split at spaces from meeting one endless word.
const wordLetters = 5

// author writes the requests of one client. Its n-th request depends on the
// load and the client's number only.
type author struct {
	load    Load
	prefix  string
	lengths *rand.Rand
	text    *rand.Rand
}

// sharedPrefix returns the text that begins every prompt of a load.
func (l Load) sharedPrefix() string {
	return string(appendText(nil, newStream(l.Seed, streamPrefix, 0), l.SharedPrefixTokens))
}

func (l Load) author(client int, prefix string) *author {
	return &author{
		load:    l,
		prefix:  prefix,
		lengths: newStream(l.Seed, streamLength, client),
		text:    newStream(l.Seed, streamText, client),
	}
}

func newStream(seed uint64, purpose, client int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(purpose)<<32|uint64(client)))
}

func (a *author) next() Request {
	prompt, output := a.draw(a.load.PromptTokens), a.draw(a.load.OutputTokens)
	text := make([]byte, 0, prompt)
	text = append(text, a.prefix...)
	return Request{
		Prompt:    string(appendText(text, a.text, prompt-len(text))),
		MaxTokens: output,
		IgnoreEOS: a.load.IgnoreEOS,
	}
}

func (a *author) draw(r Range) int { return r.Min + a.lengths.IntN(r.Max-r.Min+1) }

// appendText adds n characters of random words.
func appendText(text []byte, from *rand.Rand, n int) []byte {
	for i := range n {
		if i%(wordLetters+1) == wordLetters {
			text = append(text, ' ')
		} else {
			text = append(text, byte('a'+from.IntN(26)))
		}
	}
	return text
}
