package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// maxAnswerBytes bounds an answer that comes in one piece: 32 tokens with their log
// probabilities have a few KB.
const maxAnswerBytes = 1 << 20

// Answer is what a model says to a prompt when nothing is left to chance.
type Answer struct {
	Text   string
	Tokens []string // as the server spells them; nil where it gives none
	// Logprobs are the natural logs of the probabilities of Tokens; nil where the
	// server gives none.
	Logprobs []float64
}

type greedyBody struct {
	Model       string  `json:"model"`
	Prompt      string  `json:"prompt"`
	MaxTokens   int     `json:"max_tokens"`
	Temperature float64 `json:"temperature"`
	Logprobs    *int    `json:"logprobs,omitempty"`
}

// Greedy asks for a completion of a prompt, decoded greedily and in one piece, with
// log probabilities where the server gives them. It carries no seed: a request's own
// seed stops the CPU engine of vLLM 0.32.0.
func (c *Client) Greedy(ctx context.Context, prompt string, maxTokens int) (Answer, error) {
	model, err := c.Model(ctx)
	if err != nil {
		return Answer{}, err
	}
	one := 1
	body := greedyBody{Model: model, Prompt: prompt, MaxTokens: maxTokens, Logprobs: &one}
	answer, err := c.greedy(ctx, body)
	var status *StatusError
	if errors.As(err, &status) && refusalOf(err) == requestRefused {
		// --max-logprobs 0, or a server that knows none.
		body.Logprobs = nil
		return c.greedy(ctx, body)
	}
	return answer, err
}

func (c *Client) greedy(ctx context.Context, body greedyBody) (Answer, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return Answer{}, err
	}
	request, err := c.request(ctx, http.MethodPost, c.completions, text)
	if err != nil {
		return Answer{}, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return Answer{}, c.readStatus(response)
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return Answer{}, fmt.Errorf("read answer: %w", err)
	}
	return parseAnswer(raw)
}

func parseAnswer(raw []byte) (Answer, error) {
	var wire struct {
		Choices []struct {
			Text     string `json:"text"`
			Logprobs *struct {
				Tokens        []string   `json:"tokens"`
				TokenLogprobs []*float64 `json:"token_logprobs"`
			} `json:"logprobs"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(raw, &wire); err != nil {
		return Answer{}, fmt.Errorf("read answer: not an OpenAI-compatible one: %w", err)
	}
	if len(wire.Choices) == 0 {
		return Answer{}, errors.New("read answer: it has no choice")
	}
	first := wire.Choices[0]
	a := Answer{Text: first.Text}
	if first.Logprobs == nil || len(first.Logprobs.Tokens) != len(first.Logprobs.TokenLogprobs) {
		return a, nil
	}
	a.Tokens = first.Logprobs.Tokens
	for _, p := range first.Logprobs.TokenLogprobs {
		if p == nil {
			a.Logprobs = nil
			return a, nil
		}
		a.Logprobs = append(a.Logprobs, *p)
	}
	return a, nil
}
