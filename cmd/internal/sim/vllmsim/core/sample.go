package core

import "time"

// sample samples the next token of each request of a step whose tokens are all computed, and removes
// requests that end (vLLM v1/core/sched/scheduler.py, Scheduler.update_from_output). It returns the
// computed prompt tokens of requests that got their first token.
func (e *Engine) sample(p *plan, now time.Duration) int {
	computedPrompt := 0
	gone := false
	for i, s := range p.seqs {
		// A request may have been aborted or stopped after this step was scheduled.
		if s.status == finished || !p.work[i].Samples {
			continue
		}
		l := &s.history
		o := Output{ID: s.req.ID, HasToken: true, Token: s.sampled(l.OutputTokens), History: l}
		if l.OutputTokens == 0 {
			o.First = true
			l.FirstToken = now
			computedPrompt += l.PromptTokens
			if e.config.Generation == New {
				computedPrompt -= l.CachedTokens
			}
		} else {
			o.Gap = now - l.LastToken
		}
		l.LastToken = now
		l.OutputTokens++
		s.out = append(s.out, o.Token)
		s.tokens++
		// A request that was preempted meanwhile keeps the token and has nothing pending.
		if e.config.AsyncScheduling && s.status == running {
			s.pending--
			if known := s.computed - s.pending; known >= s.hashAt {
				e.publish(s, known)
			}
		}
		if o.Finish = e.ending(s); o.Finish != NotFinished {
			gone = gone || s.status == running
			e.finish(s)
		}
		e.outputs = append(e.outputs, o)
	}
	if gone {
		e.sweep()
	}
	return computedPrompt
}

// ending returns the reason for which a request ends with its last token, if it does (vLLM
// v1/core/sched/utils.py, check_stop).
func (e *Engine) ending(s *sequence) Reason {
	if s.stopAt > 0 && s.history.OutputTokens >= s.stopAt {
		return Stop
	}
	if s.tokens >= s.lastAt {
		return Length
	}
	return NotFinished
}
