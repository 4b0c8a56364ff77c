package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// PairRow is how far an automatic run on a server with two faults ends from the best of its grid.
type PairRow struct {
	Pair
	Start, End, Best float64 // output tokens per second
	EndAt, BestAt    string  // launch commands
	// Short is how much End is below Best, as a share of Best, and ShortMost the upper end of its 95 %
	// interval over seeds of the load.
	Short, ShortMost float64
	Restarts         int
	Took             time.Duration // virtual, of the automatic run
	Steps            []string      // what was tried, with its outcome
	Reason           string        // why the run ended
	Err              error         // why nothing was measured
}

const (
	// PairRestarts is the number of restarts that an automatic run may make, reverts included.
	PairRestarts = 5
	// PairShortMost is how far below the best of the grid it may end, at the upper end.
	PairShortMost = 0.08
	// gridSeed is the seed of the load on the grid; Short is measured on pairSeeds from it on.
	gridSeed, pairSeeds = 7, 3
)

// Reached reports whether the run ended close enough to the best within its restarts.
func (r *PairRow) Reached() bool {
	return r.Err == nil && r.ShortMost <= PairShortMost && r.Restarts <= PairRestarts
}

// ScorePairs tunes servers with two faults in virtual time. If ctx ends, ScorePairs returns its error.
func ScorePairs(ctx context.Context, list []Pair) ([]PairRow, error) {
	rows := make([]PairRow, len(list))
	err := parallel(ctx, len(list), func(i int) { rows[i] = scorePair(ctx, &list[i]) })
	return rows, err
}

// pairFlags are the flags that an automatic run on a pair may change: all that mend a fault, and no others.
var pairFlags = []string{
	"max_num_seqs", "max_num_batched_tokens", "num_gpu_blocks_override", "enable_prefix_caching", "api_server_count", "tensor_parallel_size",
}

func scorePair(ctx context.Context, p *Pair) PairRow {
	r := PairRow{Pair: *p}
	got, err := Tune(&p.Scenario, loop.Plan{Limits: loop.Limits{Restarts: PairRestarts, Allow: append(slices.Clone(pairFlags), p.Allow...)}}, Options{Seed: 1})
	if err != nil {
		r.Err = err
		return r
	}
	r.EndAt, r.Restarts, r.Took, r.Reason = got.Finished.Command, got.Finished.Restarts, got.Took, got.Finished.Reason
	for i := range got.Iterations {
		r.Steps = append(r.Steps, pairStep(&got.Iterations[i]))
	}
	m := outputs{pair: p, known: map[outputOf]float64{}}
	r.Start = m.output(p.Scenario.Server, gridSeed)
	for _, command := range append(p.Points(), r.EndAt) {
		if ctx.Err() != nil {
			r.Err = context.Cause(ctx)
			return r
		}
		if v := m.output(command, gridSeed); v > r.Best {
			r.Best, r.BestAt = v, command
		}
	}
	r.measureShort(&m)
	return r
}

// measureShort compares the end with the best on several seeds.
func (r *PairRow) measureShort(m *outputs) {
	var logs []float64
	sum := 0.0
	for seed := range uint64(pairSeeds) {
		end, best := m.output(r.EndAt, gridSeed+seed), m.output(r.BestAt, gridSeed+seed)
		if seed == 0 {
			r.End = end
		}
		logs = append(logs, math.Log(end/best))
		sum += logs[seed]
	}
	mean, squares := sum/pairSeeds, 0.0
	for _, l := range logs {
		squares += (l - mean) * (l - mean)
	}
	half := stat.StudentQuantile(0.975, pairSeeds-1) * math.Sqrt(squares/(pairSeeds-1)/pairSeeds)
	r.Short, r.ShortMost = -math.Expm1(mean), -math.Expm1(mean-half)
}

// outputs measures launch commands under a pair's load, each once for a seed.
type outputs struct {
	pair  *Pair
	known map[outputOf]float64
}

type outputOf struct {
	command string
	seed    uint64
}

// output returns the output tokens per second of a launch command, 0 if it does not start.
func (m *outputs) output(command string, seed uint64) float64 {
	of := outputOf{command, seed}
	v, ok := m.known[of]
	if !ok {
		v = m.pair.output(command, seed)
		m.known[of] = v
	}
	return v
}

func (p *Pair) output(command string, seed uint64) float64 {
	sc := p.Scenario
	sc.Server = command
	// The clients measure the output: the pages are polled as seldom as possible.
	out, err := Run(&sc, nil, Options{Seed: seed, Every: sc.Measure.For})
	if err != nil || out.refused() {
		return 0
	}
	return metric(out, "tokens_per_s")
}

func pairStep(it *loop.Iteration) string {
	text := engine.JoinChanges(it.Changes) + ": " + string(it.End)
	if it.Delta != nil {
		text += fmt.Sprintf(", %s, %s", it.Delta.Direction, signedPercent(it.Delta.Throughput.Or(math.NaN())))
	}
	for _, p := range it.Predicted {
		if p.Metric == metricGoal {
			text += fmt.Sprintf(" (predicted %s .. %s)", signedPercent(p.Low.Or(math.NaN())), signedPercent(p.High.Or(math.NaN())))
		}
	}
	return text
}

// pairTable formats rows, with what each run tried.
func pairTable(rows []PairRow) string {
	b := newReport()
	lines := []string{"FAULTS\tSEED\tSERVER\tSTART\tEND\tBEST\tSHORT\tAT MOST\tRESTARTS\tVIRTUAL\tENDS WITH\tREACHED"}
	for i := range rows {
		r := &rows[i]
		if r.Err != nil {
			lines = append(lines, fmt.Sprintf("%s + %s\t%d\t%s\t-\t-\t-\t-\t-\t-\t-\t%s\tno", r.Faults[0], r.Faults[1], r.Seed, r.Deployment, oneLine(r.Err.Error())))
			continue
		}
		lines = append(lines, fmt.Sprintf("%s + %s\t%d\t%s\t%.0f\t%.0f\t%.0f\t%s\t%s\t%d\t%s\t%s\t%s", r.Faults[0], r.Faults[1], r.Seed, r.Deployment, r.Start, r.End, r.Best,
			share(r.Short), share(r.ShortMost), r.Restarts, r.Took.Round(time.Second), strings.TrimSpace(strings.TrimPrefix(r.EndAt, r.Bare)), yes(r.Reached())))
	}
	writeTable(b, lines)
	reached := 0
	for i := range rows {
		r := &rows[i]
		if r.Reached() {
			reached++
		}
		fmt.Fprintf(b, "%s\n  best: %s\n", r.Scenario.Name, r.BestAt)
		for _, s := range r.Steps {
			fmt.Fprintf(b, "  %s\n", s)
		}
		fmt.Fprintf(b, "  %s\n", oneLine(r.Reason))
	}
	fmt.Fprintf(b, "%d of %d end within %s of the best of their grid (95 %% interval), with at most %d restarts.\n", reached, len(rows), share(PairShortMost), PairRestarts)
	return b.String()
}
