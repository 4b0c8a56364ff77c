package core

import "time"

// Engine is one scheduler with its KV cache.
type Engine struct {
	config Config
}

// New returns an idle engine. The configuration is taken as checked: it panics
// on one that vLLM would not start with (a count below 1, fewer than two blocks).
func NewEngine(c Config) *Engine { return &Engine{config: c} }

// Submit queues a request; the engine sees it in its next step.
func (e *Engine) Submit(r Request, now time.Duration) {}

// Abort ends a request, whatever its state; the next step frees what it held.
// Its end appears in the next report. Unknown and finished ones are ignored.
func (e *Engine) Abort(id ID, now time.Duration) {}

// Begin schedules the next step; false where nothing is to be done. It must be
// followed by Complete before it is called again.
func (e *Engine) Begin(now time.Duration) (Batch, bool) { return Batch{}, false }

// Complete ends the step that Begin scheduled: tokens are sampled, what finished
// is removed.
func (e *Engine) Complete(now time.Duration) Report { return Report{} }

// State returns what the gauges would show now.
func (e *Engine) State() State { return State{} }

// Idle says whether nothing is queued or running.
func (e *Engine) Idle() bool { return true }
