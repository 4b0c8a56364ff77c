package core

import (
	"slices"
	"time"
)

func (m *reference) submit(r Request) {
	n := &refer{Request: r, state: "inbox", tokens: slices.Clone(r.Prompt)}
	n.history = History{ID: r.ID, Arrival: r.Arrival, PromptTokens: len(r.Prompt), MaxTokens: r.MaxTokens, Adapter: r.Adapter}
	m.requests = append(m.requests, n)
	m.inbox = append(m.inbox, n)
}

func (m *reference) leave(r *refer) {
	m.freeAll(r)
	m.running = slices.DeleteFunc(m.running, func(o *refer) bool { return o == r })
	m.unqueue(r)
	r.state = "done"
}

func (m *reference) fail(r *refer, why Reason, _ time.Duration) {
	m.leave(r)
	history := r.history
	m.ends = append(m.ends, Output{ID: r.ID, Finish: why, History: &history})
}

func (m *reference) aborts(now time.Duration) {
	var later []ID
	for _, id := range m.abortQ {
		i := slices.IndexFunc(m.requests, func(r *refer) bool { return r.ID == id })
		switch {
		case i < 0 || m.requests[i].state == "done":
		case m.requests[i].state == "inbox":
			later = append(later, id)
		default:
			m.fail(m.requests[i], Aborted, now)
		}
	}
	m.abortQ = later
}

func (m *reference) begin(now time.Duration) (*refStep, bool) {
	for _, r := range m.inbox {
		r.history.Queued = now
		r.state = "waiting"
		fits := len(r.Prompt) > 0 && r.MaxTokens > 0 && len(r.Prompt) < m.c.MaxModelLen && m.needed(len(r.Prompt)) < m.c.NumBlocks
		if !fits {
			m.fail(r, Error, now)
			continue
		}
		m.waiting = append(m.waiting, r)
	}
	m.inbox = nil
	m.sortByPolicy()
	m.aborts(now)

	if len(m.inFlight) == 0 {
		m.step++
		p := m.schedule(now)
		if len(p.rows) == 0 && len(p.preempted) == 0 && len(m.ends) == 0 {
			m.step--
			return nil, false
		}
		m.inFlight = []*refStep{p}
	}
	if m.c.AsyncScheduling {
		m.step++
		p := m.schedule(now)
		if len(p.rows) == 0 && len(p.preempted) == 0 {
			m.step--
		} else {
			m.inFlight = append(m.inFlight, p)
		}
	}
	return m.inFlight[0], true
}

func (m *reference) complete(now time.Duration) Report {
	m.aborts(now)
	p := m.inFlight[0]
	m.inFlight = m.inFlight[1:]
	rep := Report{Step: p.number, Ended: now, Outputs: m.ends}
	m.ends = nil
	for _, row := range p.rows {
		r := row.r
		if r.state == "done" || !row.Samples {
			continue
		}
		l := &r.history
		index := len(r.tokens) - len(r.Prompt)
		o := Output{ID: r.ID, HasToken: true, Token: m.model(r.ID, index), First: index == 0}
		if o.First {
			l.FirstToken = now
			rep.ComputedPrompt += len(r.Prompt)
			if m.c.Generation == New {
				rep.ComputedPrompt -= l.CachedTokens
			}
		} else {
			o.Gap = now - l.LastToken
		}
		r.tokens = append(r.tokens, o.Token)
		l.LastToken = now
		l.OutputTokens = index + 1
		if m.c.AsyncScheduling && r.state == "running" {
			r.placeholder--
			m.makeFindable(r, r.computed-r.placeholder)
		}
		switch {
		case r.StopAfter > 0 && l.OutputTokens >= r.StopAfter && l.OutputTokens >= r.MinTokens:
			o.Finish = Stop
		case len(r.tokens) >= m.c.MaxModelLen || l.OutputTokens >= r.MaxTokens:
			o.Finish = Length
		}
		history := *l
		o.History = &history
		rep.Outputs = append(rep.Outputs, o)
		if o.Finish != NotFinished {
			m.leave(r)
		}
	}
	rep.Preemptions, m.preemptions = m.preemptions, 0
	rep.PrefixQueries, m.queries = m.queries, 0
	rep.PrefixHits, m.hits = m.hits, 0
	rep.State = m.state()
	return rep
}

func (m *reference) state() State {
	used := m.c.NumBlocks - 1 - len(m.freeList)
	return State{
		Running:         len(m.running),
		WaitingCapacity: len(m.waiting),
		WaitingDeferred: len(m.skipped),
		KVUsage:         float64(used) / float64(m.c.NumBlocks-1),
	}
}
