package probe

import (
	"encoding/json"
	"fmt"
	"math"
)

// wireUsage is how a server's counts are spelled.
type wireUsage struct {
	Prompt     json.Number     `json:"prompt_tokens"`
	Completion json.Number     `json:"completion_tokens"`
	Details    json.RawMessage `json:"prompt_tokens_details"`
	Output     json.RawMessage `json:"completion_tokens_details"`
	Reasoning  json.RawMessage `json:"reasoning_tokens"` // SGLang's place for it
}

// usage reads the server's counts, where there are any. A report without the output's
// is none: gateways write {} until they know.
func (c *chunk) usage(raw json.RawMessage) error {
	if !given(raw) {
		return nil
	}
	var w wireUsage
	if err := json.Unmarshal(raw, &w); err != nil {
		return fmt.Errorf("usage: %w", err)
	}
	prompt, ok1 := countIn(w.Prompt)
	tokens, ok2 := countIn(w.Completion)
	if !ok1 || !ok2 || w.Completion == "" {
		return nil
	}
	cached, tellsCached, ok := w.cached()
	if ok {
		c.counted, c.tellsPrompt, c.tellsCached = true, w.Prompt != "", tellsCached
		c.prompt, c.tokens, c.cached = prompt, tokens, cached
		c.reasoned, c.tellsThought = w.reasoned()
	}
	return nil
}

// cached is the count of the cached part of a prompt, where there is one; ok is false
// where it cannot be one.
func (w *wireUsage) cached() (tokens int, told, ok bool) {
	var details struct {
		Cached json.Number `json:"cached_tokens"`
	}
	if !given(w.Details) || json.Unmarshal(w.Details, &details) != nil {
		return 0, false, true
	}
	tokens, ok = countIn(details.Cached)
	return tokens, details.Cached != "", ok
}

// reasoned is the count of reasoning tokens, where there is one to believe: SGLang
// writes 0 beside the counts of models that do not reason, too.
func (w *wireUsage) reasoned() (tokens int, told bool) {
	var details struct {
		Reasoning json.Number `json:"reasoning_tokens"`
	}
	if json.Unmarshal(w.Output, &details) == nil && details.Reasoning != "" {
		return countIn(details.Reasoning)
	}
	var beside json.Number
	if json.Unmarshal(w.Reasoning, &beside) != nil {
		return 0, false
	}
	tokens, _ = countIn(beside)
	return tokens, tokens > 0
}

// maxCount bounds a count that is believed, so that sums of many stay in range.
const maxCount = 1 << 40

// countIn is a whole number from 0 to maxCount, also where it is written as 3.0;
// 0 where none is given.
func countIn(n json.Number) (count int, ok bool) {
	if n == "" {
		return 0, true
	}
	v, err := n.Float64()
	if err != nil || !(v >= 0 && v <= maxCount) || v != math.Trunc(v) {
		return 0, false
	}
	return int(v), true
}

// usage reads the server's counts. It leaves a report that lacks one of the two to the
// full parser.
func (s *scanner) usage(c *chunk) bool {
	var seen fields
	ok := s.object(func(key []byte) bool {
		switch string(key) {
		case "prompt_tokens":
			c.tellsPrompt = true
			return seen.first(0) && s.count(&c.prompt)
		case "completion_tokens":
			c.counted = true
			return seen.first(1) && s.count(&c.tokens)
		case "prompt_tokens_details":
			return seen.first(2) && (s.null() || s.object(func(key []byte) bool {
				if string(key) == "cached_tokens" {
					c.tellsCached = true
					return seen.first(3) && s.count(&c.cached)
				}
				return s.skip(0)
			}))
		case "completion_tokens_details":
			return seen.first(4) && (s.null() || s.object(func(key []byte) bool {
				if string(key) == "reasoning_tokens" {
					c.tellsThought = true
					return seen.first(5) && s.count(&c.reasoned)
				}
				return s.skip(0)
			}))
		case "reasoning_tokens":
			return false
		}
		return s.skip(0)
	})
	return ok && c.counted && c.tellsPrompt
}
