package apply

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/collect/probe"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// comparedPrompts are the prompts sent before and after a change that may alter answers:
// facts, arithmetic, code, other languages, a list and prose, because a loss of
// precision shows in some of them first.
var comparedPrompts = [...]string{
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
	answerTokens = 32
	// answersWithin limits all prompts together. A server under load has a queue.
	answersWithin = 2 * time.Minute
)

// answers holds the answers to the prompts.
type answers struct {
	list []probe.Answer // by prompt, nil if there are none
	why  string         // why there are none
}

// askPrompts sends the prompts and returns the answers.
func (r Readiness) askPrompts(ctx context.Context, l *launcher.Launch) answers {
	d, err := r.connect(l)
	if err != nil {
		return answers{why: err.Error()}
	}
	defer d.close()
	limited, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	var got answers
	for i, prompt := range comparedPrompts {
		answer, err := d.client.Greedy(limited, prompt, answerTokens)
		if err != nil {
			return answers{why: fmt.Sprintf("prompt %d of %d got no answer: %v", i+1, len(comparedPrompts), err)}
		}
		got.list = append(got.list, answer)
	}
	return got
}

// answersBefore returns the answers of the kept launch: the ones that exist, or new ones
// from ask if the change needs them and the kept launch runs.
func answersBefore(ctx context.Context, have answers, a loop.Apply, keptRuns bool, ask func(context.Context) answers) answers {
	switch {
	case !a.Answers || a.Revert || have.list != nil:
		return have
	case !keptRuns:
		return answers{why: "the baseline configuration was not running when the change was made"}
	}
	return ask(ctx)
}

// checkedAnswers compares answers before and after a change; nil if the change needs no
// comparison.
func checkedAnswers(ctx context.Context, before answers, a loop.Apply, ask func(context.Context) answers) *loop.AnswerCheck {
	if !a.Answers || a.Revert {
		return nil
	}
	if before.list == nil {
		return &loop.AnswerCheck{Why: "before the change: " + before.why}
	}
	after := ask(ctx)
	if after.list == nil {
		return &loop.AnswerCheck{Why: "after the change: " + after.why}
	}
	return compared(before.list, after.list)
}

// compared compares answers prompt by prompt. It compares probabilities only up to the
// first different token, because after it the answers continue different texts.
func compared(before, after []probe.Answer) *loop.AnswerCheck {
	c := &loop.AnswerCheck{Prompts: min(len(before), len(after))}
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
