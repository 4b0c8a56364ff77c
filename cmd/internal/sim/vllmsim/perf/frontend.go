package perf

import "time"

// FrontEnd is the CPU time that requests and tokens cost an API server process. The process is Python: one
// event loop, which receives requests and sends tokens, and one tokenizer thread (vLLM renderers/base.py:
// renderer_num_workers is 1), which runs outside the interpreter lock.
type FrontEnd struct {
	Request   time.Duration // of the loop: HTTP, validation, template, answer
	Tokenize  time.Duration // of the tokenizer thread, for each request
	Character time.Duration // of the tokenizer thread, for each character
	HandOver  time.Duration // latency to the engine's process, without CPU time
	Delivery  time.Duration // of the loop, for each step's outputs
	Token     time.Duration // of the loop, for each token: statistics and text
	Message   time.Duration // of the loop, for each message to a client
}

// FrontEnd returns the costs of an API server. The constants limit it to 21,700 streamed tokens per second;
// vLLM's own measurements on Qwen3-0.6B show limits of 16,000 to 25,000 for one API server.
func (m *Machine) FrontEnd() FrontEnd {
	c := &m.c
	d := func(seconds float64) time.Duration { return time.Duration(seconds*1e9 + 0.5) }
	return FrontEnd{
		Request: d(c.request), Tokenize: d(c.tokenize), Character: d(c.character), HandOver: d(c.handOver),
		Delivery: d(c.delivery), Token: d(c.token), Message: d(c.message),
	}
}
