package probe

import (
	"encoding/json"
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// wireUsage is a usage report as servers spell it.
type wireUsage struct {
	Prompt     json.Number     `json:"prompt_tokens"`
	Completion json.Number     `json:"completion_tokens"`
	Details    json.RawMessage `json:"prompt_tokens_details"`
	Output     json.RawMessage `json:"completion_tokens_details"`
	Reasoning  json.RawMessage `json:"reasoning_tokens"` // SGLang's place for it
}

// readUsage reads a usage report. It ignores a report without output tokens, because gateways send
// {} until they know them, and a report with an invalid count.
func (c *chunk) readUsage(raw json.RawMessage) error {
	var w wireUsage
	if err := json.Unmarshal(raw, &w); err != nil {
		return err
	}
	var details struct {
		Cached json.Number `json:"cached_tokens"`
	}
	if json.Unmarshal(w.Details, &details) != nil {
		details.Cached = "" // absent, or of another type
	}
	prompt, ok1 := countIn(w.Prompt)
	tokens, ok2 := countIn(w.Completion)
	cached, ok3 := countIn(details.Cached)
	if ok1 && ok2 && ok3 && tokens.OK {
		c.prompt, c.tokens, c.cached, c.reasoned = prompt, tokens, cached, w.reasoned()
	}
	return nil
}

// reasoned returns the number of reasoning tokens. SGLang reports it beside the other counts, and
// as 0 for models that do not reason.
func (w *wireUsage) reasoned() stat.Opt {
	var details struct {
		Reasoning json.Number `json:"reasoning_tokens"`
	}
	if json.Unmarshal(w.Output, &details) == nil && details.Reasoning != "" {
		tokens, _ := countIn(details.Reasoning)
		return tokens
	}
	var beside json.Number
	if json.Unmarshal(w.Reasoning, &beside) != nil {
		return stat.None
	}
	tokens, _ := countIn(beside)
	if tokens.V == 0 {
		return stat.None
	}
	return tokens
}

// maxCount is the largest plausible count, so that sums of many stay in range.
const maxCount = 1 << 40

// countIn returns a whole number from 0 to maxCount, which may be written as 3.0, or None if n is
// empty. ok is false for any other number.
func countIn(n json.Number) (count stat.Opt, ok bool) {
	if n == "" {
		return stat.None, true
	}
	v, err := n.Float64()
	if err != nil || !(v >= 0 && v <= maxCount) || v != math.Trunc(v) {
		return stat.None, false
	}
	return stat.Some(v), true
}
