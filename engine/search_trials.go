package engine

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// ending is what a trial taught.
type ending uint8

const (
	gained   ending = iota // kept
	lost                   // no gain, or worse
	failed                 // the server did not start with it, or did not live
	unjudged               // measured, and no verdict
)

// tried is a change that was made on this server, as the search remembers it.
type tried struct {
	changes []Change
	ending  ending
	effect  stat.Opt // logarithm of what it brought of the goal
	noise   float64  // standard deviation of that, 0 not known
	// before and after are what was measured; nil where it was not.
	before, after *Diagnosis
	// since are flags that were changed for good after it.
	since []string
}

// history reads the trials from a run's iterations, oldest first. A change whose
// measurement was cut short, and restarts without a change, are none.
func history(list []Iteration) []tried {
	var out []tried
	for i := range list {
		it := &list[i]
		changes := material(it.Changes)
		if it.Noticed == SameSettings || len(changes) == 0 {
			continue
		}
		t := tried{changes: changes, before: it.Before, after: it.After}
		t.effect, t.noise = it.effect()
		switch {
		case it.End == IterationKept || it.End == IterationContinued:
			t.ending = gained
			for j := range out {
				for _, c := range changes {
					out[j].since = append(out[j].since, c.Flag)
				}
			}
		case it.End == IterationBroken && it.Failure != "":
			t.ending = failed
		case it.End == IterationOpen || it.End == IterationBroken || it.Delta == nil:
			continue
		case it.Delta.Direction == Inconclusive || it.Delta.Direction == NotComparable:
			t.ending = unjudged
		default:
			t.ending = lost
		}
		out = append(out, t)
	}
	return out
}

// effect is the logarithm of what a change was measured to bring of the goal, with its
// standard deviation. It is there without a verdict too: a guess is more than nothing.
func (it *Iteration) effect() (effect stat.Opt, noise float64) {
	if it.Delta == nil {
		return stat.None, 0
	}
	if v := it.Delta.Verdict; v != nil && v.Known {
		high, low := math.Log(max(leastFactor, 1+v.Effect.High)), math.Log(max(leastFactor, 1+v.Effect.Low))
		return logOf(stat.Some(v.Effect.Mid), 1), max(0, high-low) / (2 * ninetyFive)
	}
	return logOf(it.Delta.Throughput, 1), 0
}

// ninetyFive is the number of standard deviations that half of a 95 % interval has.
const ninetyFive = 1.96

// entangled are flags whose best values depend on each other: seats need a pool to
// run in and a budget to be fed by.
var entangled = [...]string{
	"--max-num-seqs", "--gpu-memory-utilization", "--num-gpu-blocks-override", "--kv-cache-dtype",
	"--max-num-batched-tokens", "--kv-cache-memory-bytes",
}

func isEntangled(flag string) bool { return slices.Contains(entangled[:], flag) }

// relieved says that another flag, on which the worth of this change depends, was
// changed for good since.
func (t *tried) relieved() bool {
	touches := func(flag string) bool {
		return slices.ContainsFunc(t.changes, func(c Change) bool { return c.Flag == flag })
	}
	if !slices.ContainsFunc(t.changes, func(c Change) bool { return isEntangled(c.Flag) }) {
		return false
	}
	return slices.ContainsFunc(t.since, func(flag string) bool { return isEntangled(flag) && !touches(flag) })
}

// sameLoad says that a trial was made under the load of a diagnosis.
func (t *tried) sameLoad(d *Diagnosis, factor float64) bool {
	if t.before == nil || d == nil {
		return true
	}
	was := attempted("", t.before)
	return was.near(d, factor)
}

// alike says whether two changes set the same flags to the same values.
func alike(a, b []Change) bool {
	if len(a) != len(b) {
		return false
	}
	for _, c := range a {
		if !slices.ContainsFunc(b, func(o Change) bool { return o.Flag == c.Flag && sameValue(o.To, c.To) }) {
			return false
		}
	}
	return true
}

// beyond says whether each of these changes goes at least as far, in its direction,
// as the changes that were tried: what did not start with less does not start with
// more.
func beyond(changes, limit []Change) bool {
	for _, was := range limit {
		if !slices.ContainsFunc(changes, func(c Change) bool { return c.Flag == was.Flag && asFar(c, was) }) {
			return false
		}
	}
	return len(limit) > 0
}

func asFar(c, was Change) bool {
	if sameValue(c.To, was.To) {
		return true
	}
	to, okTo := number(c.To)
	limit, okLimit := number(was.To)
	from, okFrom := number(was.From)
	if !okFrom {
		from, okFrom = number(c.From)
	}
	if !okTo || !okLimit || !okFrom {
		return false
	}
	return limit > from && to >= limit || limit < from && to <= limit
}

func number(text string) (float64, bool) {
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// speaks says why a trial speaks against changes under the load of a diagnosis, ""
// where it does not.
func (t *tried) speaks(changes []Change, d *Diagnosis) string {
	switch t.ending {
	case failed:
		if beyond(changes, t.changes) {
			return "the server did not run with " + listed(t.changes)
		}
	case lost:
		if t.relieved() || !t.sameLoad(d, muchOther) {
			return ""
		}
		if alike(changes, t.changes) || len(changes) == 1 && len(t.changes) == 1 && beyond(changes, t.changes) {
			return listed(t.changes) + " was tried and gained nothing"
		}
	}
	return ""
}

// againLoad is the factor between loads up to which a change without a verdict is
// worth a second trial: what moved then is back.
const againLoad = 1.25

// unproven are the trials of these changes that ended without a verdict: how many,
// and the last of them, nil where none did.
func unproven(trials []tried, changes []Change) (last *tried, n int) {
	for i := range trials {
		if t := &trials[i]; t.ending == unjudged && alike(t.changes, changes) {
			last, n = t, n+1
		}
	}
	return last, n
}

// flagName spells a flag without its dashes and with those inside.
func flagName(flag string) string {
	return strings.ReplaceAll(strings.TrimLeft(flag, "-"), "_", "-")
}
