package apply

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/rooftop-dev/rooftop/collect/probe"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// canaryPrompts are what is asked before and after a change that may alter answers:
// facts, arithmetic, code, other languages, a list and plain prose, because a loss
// of precision shows in some of them first.
var canaryPrompts = [...]string{
	"The capital of France is",
	"Q: What is 17 * 23? A: 17 * 23 =",
	"def fibonacci(n):\n    \"\"\"Return the n-th Fibonacci number.\"\"\"\n",
	"Der schnelle braune Fuchs springt über",
	"SELECT name, COUNT(*) FROM orders WHERE",
	"The first five prime numbers are",
	"Once upon a time, in a village at the foot of the mountains,",
	"{\"city\": \"Berlin\", \"country\": \"Germany\", \"population\":",
}

const (
	canaryTokens = 32
	// canaryWithin bounds all prompts together: a server under load has a queue.
	canaryWithin = 2 * time.Minute
)

// answers are those to the canary prompts, by prompt.
type answers struct {
	list []probe.Answer // nil where none were asked
	why  string         // why there are none
}

// ask asks the canary prompts.
func (r Readiness) ask(ctx context.Context, l *Launch) answers {
	d, err := r.door(l)
	if err != nil {
		return answers{why: err.Error()}
	}
	defer d.close()
	limited, cancel := context.WithTimeout(ctx, canaryWithin)
	defer cancel()
	var got answers
	for i, prompt := range canaryPrompts {
		answer, err := d.client.Greedy(limited, prompt, canaryTokens)
		if err != nil {
			return answers{why: fmt.Sprintf("prompt %d of %d got no answer: %v", i+1, len(canaryPrompts), err)}
		}
		got.list = append(got.list, answer)
	}
	return got
}

// asked are the answers of the kept launch, which are asked for where it runs.
func asked(ctx context.Context, have answers, a engine.Apply, keptRuns bool, ask func(context.Context) answers) answers {
	switch {
	case !a.Answers || a.Revert || have.list != nil:
		return have
	case !keptRuns:
		return answers{why: "the configuration to compare with did not run when the change was made"}
	}
	return ask(ctx)
}

// canary compares answers before and after a change; nil where it asks for none.
func canary(ctx context.Context, before answers, a engine.Apply, ask func(context.Context) answers) *engine.Canary {
	if !a.Answers || a.Revert {
		return nil
	}
	if before.list == nil {
		return &engine.Canary{Why: "before the change: " + before.why}
	}
	after := ask(ctx)
	if after.list == nil {
		return &engine.Canary{Why: "after the change: " + after.why}
	}
	return compared(before.list, after.list)
}

// compared compares answers prompt by prompt. Behind the first token that differs
// two answers are about other texts, and their probabilities are no longer of the
// same thing.
func compared(before, after []probe.Answer) *engine.Canary {
	c := &engine.Canary{Prompts: min(len(before), len(after))}
	sum, n := 0.0, 0
	for i := range c.Prompts {
		a, b := before[i], after[i]
		if a.Text == b.Text {
			c.Same++
		}
		for k := range min(len(a.Logprobs), len(b.Logprobs)) {
			if a.Tokens[k] != b.Tokens[k] {
				break
			}
			if d := math.Abs(a.Logprobs[k] - b.Logprobs[k]); !math.IsNaN(d) && !math.IsInf(d, 0) {
				sum += d
				n++
			}
		}
	}
	if n > 0 {
		c.Drift = stat.Some(sum / float64(n))
	}
	return c
}
