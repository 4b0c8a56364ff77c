package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// Calibration is what a server's tokenizer makes of the words of prompts.
type Calibration struct {
	TokensPerWord float64
	// Characters says that a character is a token, so that Characters is exact.
	Characters bool
	Source     string // "/tokenize", "a request of 64 words"
}

// calibrationWords is how many words are measured, fewer than the smallest
// context in use.
const calibrationWords = 64

// Calibrate asks the server how many tokens a word is: vLLM's /tokenize, and
// where there is none a completion of one token, which is a request like others
// to the server. Each may take ten seconds. The error is the server's, or says
// that it does not count or answer.
func (c *Client) Calibrate(ctx context.Context) (Calibration, error) {
	short, long := vocabulary[:calibrationWords], vocabulary[:2*calibrationWords]
	first, err := c.countTokens(ctx, strings.Join(short, " "))
	if err == nil {
		var both int
		// The difference has no token that the tokenizer puts before a text.
		if both, err = c.countTokens(ctx, strings.Join(long, " ")); err == nil {
			return calibration(both-first, long[calibrationWords:], 0, "/tokenize")
		}
	}
	var status *StatusError
	if !errors.As(err, &status) {
		return Calibration{}, fmt.Errorf("count tokens: %w", err)
	}
	var result Result
	err = promptly(ctx, func(ctx context.Context) (err error) {
		result, err = c.Complete(ctx, Request{Prompt: strings.Join(short, " "), MaxTokens: 1})
		return err
	})
	switch {
	case err != nil:
		return Calibration{}, fmt.Errorf("count tokens: %w", err)
	case !result.Counted:
		return Calibration{}, errors.New("count tokens: the server does not tell how many a prompt has")
	}
	return calibration(result.PromptTokens, short, 1, fmt.Sprintf("a request of %d words", calibrationWords))
}

// calibration divides tokens by words, of which all but so many at the beginning
// have a blank before them. A tokenizer may put a token before a text.
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

// Unreachable says whether an error is of a connection that could not be made or
// broke before an answer, or of a server that wants another key.
func Unreachable(err error) bool {
	var status *StatusError
	if errors.As(err, &status) {
		return status.Code == http.StatusUnauthorized || status.Code == http.StatusForbidden
	}
	var network net.Error
	return errors.As(err, &network)
}

// countTokens asks vLLM's /tokenize.
func (c *Client) countTokens(ctx context.Context, text string) (count int, err error) {
	model, err := c.Model(ctx)
	if err != nil {
		return 0, err
	}
	err = promptly(ctx, func(ctx context.Context) (err error) {
		count, err = c.tokensOf(ctx, model, text)
		return err
	})
	return count, err
}

func (c *Client) tokensOf(ctx context.Context, model, text string) (int, error) {
	body, err := json.Marshal(map[string]string{"model": model, "prompt": text})
	if err != nil {
		return 0, err
	}
	request, err := c.request(ctx, http.MethodPost, c.tokenize, body)
	if err != nil {
		return 0, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 0, c.readStatus(response)
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxModelsBytes))
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
