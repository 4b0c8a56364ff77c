package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Calibration is how a server's tokenizer splits the words of prompts.
type Calibration struct {
	TokensPerWord float64
	// Characters reports whether every character is one token, so that prompt lengths are exact.
	Characters bool
	Source     string // "/tokenize", "a request of 64 words"
}

// calibrationWords is how many words are counted. They must fit the smallest context in use.
const calibrationWords = 64

// Calibrate measures how many tokens a word has. words must have at least 128 entries. It uses
// vLLM's /tokenize or, if the server has none, a completion of one token. Each request may take ten
// seconds. It fails if the server fails, or reports no count.
func (c *Client) Calibrate(ctx context.Context, words []string) (Calibration, error) {
	short, long := words[:calibrationWords], words[:2*calibrationWords]
	first, err := c.countTokens(ctx, strings.Join(short, " "))
	if err == nil {
		var both int
		// The difference excludes a token that the tokenizer puts before a text.
		if both, err = c.countTokens(ctx, strings.Join(long, " ")); err == nil {
			return calibration(both-first, long[calibrationWords:], 0, "/tokenize")
		}
	}
	var status *StatusError
	if !errors.As(err, &status) {
		return Calibration{}, fmt.Errorf("count tokens: %w", err)
	}
	var tokens stat.Opt
	err = promptly(ctx, func(ctx context.Context) error {
		record, err := c.Send(ctx, Request{Prompt: strings.Join(short, " "), MaxTokens: 1}, func() time.Duration { return 0 })
		tokens = record.PromptTokens
		return err
	})
	switch {
	case err != nil:
		return Calibration{}, fmt.Errorf("count tokens: %w", err)
	case !tokens.OK:
		return Calibration{}, errors.New("count tokens: the server does not report how many a prompt has")
	}
	return calibration(int(tokens.V), short, 1, fmt.Sprintf("a request of %d words", calibrationWords))
}

// calibration divides tokens by words. All words have a blank before them, except the first bare
// ones. A tokenizer may put one more token before a text.
func calibration(tokens int, words []string, bare int, source string) (Calibration, error) {
	if tokens < len(words)/2 {
		return Calibration{}, fmt.Errorf("count tokens: %s says that %d words are %d tokens", source, len(words), tokens)
	}
	characters := len(words) - bare
	for _, word := range words {
		characters += len(word)
	}
	return Calibration{
		TokensPerWord: float64(tokens) / float64(len(words)),
		Characters:    tokens >= characters && tokens <= characters+bare,
		Source:        source,
	}, nil
}

// Unreachable reports whether the connection failed before an answer, or the server refused the API
// key.
func Unreachable(err error) bool {
	var status *StatusError
	if errors.As(err, &status) {
		return status.Code == http.StatusUnauthorized || status.Code == http.StatusForbidden
	}
	var network net.Error
	return errors.As(err, &network)
}

// countTokens counts the tokens of a text with vLLM's /tokenize.
func (c *Client) countTokens(ctx context.Context, text string) (int, error) {
	model, err := c.Model(ctx)
	if err != nil {
		return 0, err
	}
	answer, err := c.ask(ctx, tokenizePath, map[string]string{"model": model, "prompt": text})
	if err != nil {
		return 0, err
	}
	var counted struct {
		Count *int `json:"count"`
	}
	if err := json.Unmarshal(answer, &counted); err != nil || counted.Count == nil {
		return 0, &StatusError{Code: http.StatusNotImplemented, Message: "the answer has no count"}
	}
	return *counted.Count, nil
}
