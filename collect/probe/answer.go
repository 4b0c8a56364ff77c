package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Answer is a greedily decoded completion.
type Answer struct {
	Text   string
	Tokens []string // as the server spells them; nil if it returns none
	// Logprobs are the natural logarithms of the probabilities of Tokens; nil if the server returns
	// none.
	Logprobs []float64
}

// Greedy requests a greedily decoded completion of a prompt in one piece, with log probabilities if
// the server supports them. The request has no seed: a per-request seed stops the CPU engine of
// vLLM 0.32.0.
func (c *Client) Greedy(ctx context.Context, prompt string, maxTokens int) (Answer, error) {
	model, err := c.Model(ctx)
	if err != nil {
		return Answer{}, err
	}
	body := requestBody{Model: model, Prompt: &prompt, MaxTokens: maxTokens, Temperature: new(float64), Logprobs: 1}
	raw, err := c.exchangeWhole(ctx, completionsPath, body)
	if RefusalOf(err) == RequestRefused {
		body.Logprobs = 0 // refused with --max-logprobs 0, or by a server without support
		raw, err = c.exchangeWhole(ctx, completionsPath, body)
	}
	if err != nil {
		return Answer{}, err
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
