package demo

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/report"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// sized is a server whose throughput and advice are a function of its seats.
type sized struct {
	output map[string]float64 // seats to output tokens per second
	advice map[string]string  // seats to recommended seats
	refuse string             // seats with which it does not start
	starts []string
}

func (s *sized) Start(_ context.Context, c *launch.Config) error {
	seats, _, _ := c.Value("max_num_seqs")
	s.starts = append(s.starts, seats)
	if seats == s.refuse {
		return errors.New("ValueError: not with these seats")
	}
	return nil
}

func (s *sized) Measure(ctx context.Context, c *launch.Config) (engine.Diagnosis, error) {
	time.Sleep(10 * time.Second)
	seats, _, _ := c.Value("max_num_seqs")
	d := engine.Diagnosis{
		Outcome:  engine.OutcomeHealthy,
		Windows:  engine.WindowCounts{Collected: 5, Evaluable: 5, Active: 5},
		Measured: []engine.NamedQuantity{{Name: "generation_tokens_per_s", Quantity: engine.Quantity{Value: stat.Some(s.output[seats]), Unit: "tok/s"}}},
	}
	if to := s.advice[seats]; to != "" {
		d.Outcome = engine.OutcomeRecommendation
		d.Recommendation = &engine.Recommendation{Finding: engine.SeatSaturation, Fix: engine.Fix{Kind: engine.KindFlag, Flag: "--max-num-seqs", From: seats, To: to, Command: "raise the seats", Why: "They wait."}}
		d.Findings = []engine.Finding{{ID: engine.SeatSaturation, State: engine.Fired, Significant: true}}
	}
	return d, ctx.Err()
}

// diary notes the types of the events and the finish.
type diary struct {
	*Narrator
	seen []string
	end  report.Finish
}

func (d *diary) note(what string) { d.seen = append(d.seen, what) }

func (d *diary) Verdict(i int, delta *engine.Delta, p []engine.Prediction) {
	d.note(string(delta.Direction))
	d.Narrator.Verdict(i, delta, p)
}
func (d *diary) Kept(i int, c report.Change) { d.note("kept " + c.To); d.Narrator.Kept(i, c) }
func (d *diary) Reverted(i int, c report.Change) {
	d.note("reverted " + c.To)
	d.Narrator.Reverted(i, c)
}
func (d *diary) Error(err error)          { d.note("error"); d.Narrator.Error(err) }
func (d *diary) Finished(f report.Finish) { d.note("finished"); d.end = f; d.Narrator.Finished(f) }

func command(t *testing.T, text string) *launch.Config {
	t.Helper()
	c, err := launch.ParseCommand(text, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRun(t *testing.T) {
	steady := map[string]float64{"4": 100, "16": 180, "32": 250, "64": 260}
	for _, c := range []struct {
		name   string
		server sized
		rounds int
		starts []string
		seen   []string
		end    report.Finish
		fails  bool
	}{
		{
			name: "one change helps", server: sized{output: steady, advice: map[string]string{"4": "32"}}, rounds: 4,
			starts: []string{"4", "32"}, seen: []string{"better", "kept 32", "finished"},
			end: report.Finish{Reason: "nothing is left to recommend", Command: "vllm serve m --max-num-seqs 32", Gain: stat.Some(1.5), Restarts: 1},
		},
		{
			name: "two changes help", server: sized{output: steady, advice: map[string]string{"4": "16", "16": "32"}}, rounds: 4,
			starts: []string{"4", "16", "32"}, seen: []string{"better", "kept 16", "better", "kept 32", "finished"},
			end: report.Finish{Reason: "nothing is left to recommend", Command: "vllm serve m --max-num-seqs 32", Gain: stat.Some(1.5), Restarts: 2},
		},
		{
			name: "a change without gain is undone and not tried again", server: sized{output: steady, advice: map[string]string{"32": "64"}}, rounds: 4,
			starts: []string{"32", "64", "32"}, seen: []string{"plateau", "reverted 64", "finished"},
			end: report.Finish{Reason: "--max-num-seqs 64 was tried and not kept, and nothing else is recommended", Command: "vllm serve m --max-num-seqs 32", Restarts: 2, Remains: []engine.FindingID{engine.SeatSaturation}},
		},
		{
			name: "a change for the worse is undone", server: sized{output: steady, advice: map[string]string{"32": "4"}}, rounds: 4,
			starts: []string{"32", "4", "32"}, seen: []string{"worse", "reverted 4", "finished"},
			end: report.Finish{Reason: "--max-num-seqs 4 was tried and not kept, and nothing else is recommended", Command: "vllm serve m --max-num-seqs 32", Restarts: 2, Remains: []engine.FindingID{engine.SeatSaturation}},
		},
		{
			name: "the rounds are used up", server: sized{output: steady, advice: map[string]string{"4": "16", "16": "32"}}, rounds: 1,
			starts: []string{"4", "16"}, seen: []string{"better", "kept 16", "finished"},
			end: report.Finish{ExitCode: 3, Reason: "stopped after one change, the most asked for", Command: "vllm serve m --max-num-seqs 16", Gain: stat.Some(0.8), Restarts: 1, Remains: []engine.FindingID{engine.SeatSaturation}},
		},
		{
			name: "the server refuses the change", server: sized{output: steady, advice: map[string]string{"4": "16"}, refuse: "16"}, rounds: 4,
			starts: []string{"4", "16", "4"}, seen: []string{"error", "finished"},
			end:   report.Finish{ExitCode: 1, Reason: "the change could not be tried; the server runs as before", Command: "vllm serve m --max-num-seqs 4", Restarts: 2, Remains: []engine.FindingID{engine.SeatSaturation}},
			fails: true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				clock := func() time.Duration { return time.Since(began) }
				var out bytes.Buffer
				d := &diary{Narrator: &Narrator{W: &out, Clock: clock}}
				end, err := Run(t.Context(), Plan{
					Server: &c.server, Launch: command(t, "vllm serve m --max-num-seqs "+c.starts[0]),
					Settle: 5 * time.Second, Rounds: c.rounds, Tell: d, Clock: clock, Interrupted: func() int { return 130 },
				})
				if (err != nil) != c.fails {
					t.Fatalf("error %v", err)
				}
				if !slices.Equal(c.server.starts, c.starts) {
					t.Errorf("started with %v, want %v", c.server.starts, c.starts)
				}
				if !slices.Equal(d.seen, c.seen) {
					t.Errorf("told %v, want %v", d.seen, c.seen)
				}
				if diff := cmp.Diff(c.end, end); diff != "" || cmp.Diff(end, d.end) != "" {
					t.Errorf("finish (-want +got):\n%s", diff)
				}
				for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
					if line != "" && !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, Mark) {
						t.Errorf("not marked: %q", line)
					}
				}
			})
		})
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		var out bytes.Buffer
		n := &Narrator{W: &out, Clock: func() time.Duration { return time.Since(began) }}
		s := sized{output: map[string]float64{"4": 100}}
		end, err := Run(ctx, Plan{Server: &s, Launch: command(t, "vllm serve m --max-num-seqs 4"), Settle: time.Minute, Rounds: 1, Tell: n, Clock: n.Clock, Interrupted: func() int { return 130 }})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if end.ExitCode != 130 || end.Reason != "interrupted" {
			t.Errorf("finished with %+v", end)
		}
		if strings.Contains(out.String(), "error") {
			t.Errorf("an interruption was told as an error:\n%s", out.String())
		}
	})
}
