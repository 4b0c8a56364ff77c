package vllmsim

// HTTP for a simulated server on the wall clock: vLLM's endpoints, event streams and
// errors, and under /sim/ the endpoints of the simulation.
//
// A [Host] keeps a port, on which servers are started one after another. One goroutine owns the
// [vllmsim.Server] of a start; handlers send it commands over a channel. It sleeps until the next event of the
// server, at least a millisecond, so that many short steps cost one wake-up and their outputs are written
// together.
//
// Formats, order and texts of answers are those of vLLM 0.32.0 (vllm/entrypoints/openai,
// vllm/entrypoints/serve), whichever release the metrics page imitates. Every answer has the header
// x-simulated: 1.
