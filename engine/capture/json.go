package capture

import (
	"cmp"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Document returns the distribution for a document: null without observations.
func (d Distribution) Document() any {
	if d.Count <= 0 {
		return nil
	}
	type observed Distribution
	return observed(d)
}

// Document returns the row for a document: an absent value has a reason.
func (r Row) Document() any {
	type row Row
	if !r.Mean.Finite().OK && !r.Peak.Finite().OK {
		r.Reason = cmp.Or(r.Reason, "not measured")
	}
	return row(r)
}

// Fields returns pointers to the numbers of a page by name.
func (p *PageSample) Fields() map[string]*stat.Opt {
	return map[string]*stat.Opt{
		"generation_tokens": &p.GenerationTokens, "prompt_tokens": &p.PromptTokens, "requests": &p.Requests,
		"running": &p.Running, "waiting": &p.Waiting, "kv_usage": &p.KVUsage, "sequence_steps": &p.SequenceSteps,
		"ttft_sum_s": &p.TTFTSum, "ttft_count": &p.TTFTCount, "queue_sum_s": &p.QueueSum, "queue_count": &p.QueueCount,
		"prefill_sum_s": &p.PrefillSum, "prefill_count": &p.PrefillCount,
	}
}

// Precision is the precision of times in a document.
const Precision = time.Microsecond

// Round rounds all times of a capture to Precision, so that its figures are those of its document.
func (c *Capture) Round() {
	round(&c.Period, &c.Begin, &c.End, &c.GPUs.Averaging)
	for i := range c.Requests {
		r := &c.Requests[i]
		round(&r.Sent, &r.Connect, &r.Written, &r.Answered, &r.End)
		for j := range r.Chunks {
			round(&r.Chunks[j].At)
		}
	}
	for i := range c.Tree.Processes {
		round(&c.Tree.Processes[i].Joined, &c.Tree.Processes[i].Left)
	}
	for i := range c.Tree.Samples {
		s := &c.Tree.Samples[i]
		round(&s.At, &s.Took)
		for j := range s.Processes {
			round(&s.Processes[j].CPU, &s.Processes[j].Reaped)
		}
	}
	for i := range c.Tree.Cgroups {
		round(&c.Tree.Cgroups[i].At)
	}
	for i := range c.GPUs.Readings {
		round(&c.GPUs.Readings[i].T, &c.GPUs.Readings[i].Took)
	}
	for i := range c.Pages {
		round(&c.Pages[i].At, &c.Pages[i].Took)
	}
}

func round(times ...*time.Duration) {
	for _, t := range times {
		*t = t.Round(Precision)
	}
}
