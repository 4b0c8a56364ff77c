package loop

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

func words(s string) string { return strings.ReplaceAll(s, figure.NBSP, " ") }

func TestSummaries(t *testing.T) {
	for _, c := range []struct{ name, got, want string }{
		{"score", Score{Made: 4, Within: 3, Error: stat.Some(0.06)}.Summary(), "3 of 4 predictions were within range, median error 6 %"},
		{"no score", Score{}.Summary(), ""},
		{"limits", Limits{Restarts: 5, Downtime: 10 * time.Minute, UsedStarts: 2, UsedOutages: 40 * time.Second}.Summary(), "2 of 5 restarts, 40 s of 10 min down"},
		{"no limits", Limits{UsedStarts: 1}.Summary(), "1 restart, 0 s down"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := words(c.got); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

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
