// Package lever defines each setting that rooftop may change, once: its present value, what a change costs beside a
// restart, the gain to expect, what must be allowed first, and the values that an agent may give it. Rules recommend
// levers, and the search tries them. Flags and values are those of vLLM and of one rank; [engine.Facts.Change] returns
// those of another engine.
package lever

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/roofline"
)

// Restart is the cost of every change of a flag.
const Restart = "one restart: no requests are served while the model loads and warms up"

// Lever is a setting that rooftop may change.
type Lever struct {
	Flag string
	// Now returns the present value as a launch has it, "" if it is unknown or not given, and its source. It is nil for
	// a lever that no rule recommends and the search does not try.
	Now   func(f *engine.Facts) (value string, from engine.Source)
	Costs []string // beside the restart
	// Tied means that the best value depends on those of the other tied levers: slots need a pool to run in and a token budget.
	Tied bool
	// Asks is why --allow-flags has to name the flag, "" if it need not. That a flag can alter answers is in the catalog.
	Asks string
	// Values are what an agent may ask to predict; [Lever.Applicable] says whether it may also set them. Nil is neither.
	Values *Values
	// Gain predicts a value by the physical model; of choices only those in Predicted. It is nil if the model has none.
	Gain      func(d *engine.Diagnosis, to int) roofline.Gain
	Predicted []string
	// Predict predicts a change otherwise, or returns why it cannot.
	Predict func(d *engine.Diagnosis, c engine.Change) (g roofline.Gain, why string)
}

// Values are the choices of a setting or, without any, a range of numbers.
type Values struct {
	Choices     []string
	Least, Most float64
	Whole       bool
}

var (
	count    = &Values{Least: 1, Most: 1 << 24, Whole: true}
	fewCount = &Values{Least: 1, Most: 64, Whole: true}
	toggle   = &Values{Choices: []string{"on", "off"}}
)

// levers are all levers. Those without a name are set by users and agents only.
var levers = []*Lever{
	Slots, TokenBudget, LongPrefill, Blocks, Utilization, CacheType, Eager, TensorParallel, APIServers, PrefixCaching, LoRAs,
	{Flag: "--kv-cache-memory-bytes", Tied: true},
	{Flag: "--enable-chunked-prefill", Values: toggle},
	{Flag: "--async-scheduling", Values: toggle},
}

// All returns every lever.
func All() []*Lever { return slices.Clone(levers) }

// Of returns the lever of a flag of vLLM, nil if there is none.
func Of(flag string) *Lever {
	if i := slices.IndexFunc(levers, func(l *Lever) bool { return l.Flag == flag }); i >= 0 {
		return levers[i]
	}
	return nil
}

// Applicable reports whether an agent may change the setting, not only ask for a prediction: it leaves answers and
// other hardware as they are. A flag that is no lever may run code, read files or open connections (--worker-cls,
// --otlp-traces-endpoint): a name or a value that an agent was talked into must not reach a command line.
func (l *Lever) Applicable() bool {
	return l.Values != nil && l.Asks == "" && !catalog.ChangesAnswers(l.Flag)
}

// Change returns the change of a server's setting from its present value. The flag is "" if the engine has none.
func (l *Lever) Change(f *engine.Facts, to string) engine.Change {
	from, _ := l.Now(f)
	return f.Change(l.Flag, from, to)
}

// ParseNumber returns a finite value as a number; ok is false if it is none.
func ParseNumber(text string) (v float64, ok bool) {
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// fact returns a lever's Now from the fact of its present value.
func fact[T any](of func(f *engine.Facts) engine.Fact[T]) func(*engine.Facts) (string, engine.Source) {
	return func(f *engine.Facts) (string, engine.Source) {
		now := of(f)
		if !now.Known {
			return "", now.Source
		}
		return fmt.Sprint(now.Value), now.Source
	}
}

// Predict predicts a change by the model calibrated on a measurement, or returns why it cannot.
func Predict(d *engine.Diagnosis, c engine.Change) (g roofline.Gain, why string) {
	l, to := Of(c.Flag), 0.0
	switch {
	case l != nil && l.Predict != nil:
		return l.Predict(d, c)
	case l != nil && l.Gain != nil && l.Predicted == nil:
		var ok bool
		if to, ok = ParseNumber(c.To); !ok || to < 1 || to > math.MaxInt32 {
			return g, c.Flag + " takes a positive number"
		}
	}
	switch {
	case d.Performance == nil:
		return g, "no physical model of this run: " + d.Ceiling.PhysicalReason
	case l == Slots && !d.Facts.MaxNumSeqs.Known:
		return g, "the number of slots is not known"
	case l == nil || l.Gain == nil || l.Predicted != nil && !slices.Contains(l.Predicted, c.To):
		return g, fmt.Sprintf("no model predicts %s: measure, make the change, measure again and compare", c)
	}
	return l.Gain(d, int(to)), ""
}
