package loop

import (
	"testing"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

func TestCanaryInWords(t *testing.T) {
	for _, c := range []struct {
		check   *AnswerCheck
		want    string
		changed bool
	}{
		{nil, "", false},
		{&AnswerCheck{Prompts: 12, Same: 12}, "12 of 12 answers are the same", false},
		{&AnswerCheck{Prompts: 12, Same: 9, Drift: stat.Some(0.031)}, "9 of 12 answers are the same, log probabilities differ by 0.031 on average", true},
		{&AnswerCheck{Why: "the server gives no completion"}, "answers not compared: the server gives no completion", false},
	} {
		if got, changed := c.check.Summary(); got != c.want || changed != c.changed {
			t.Errorf("%+v: %q, %v", c.check, got, changed)
		}
	}
}
