// Package serve lets a simulated server answer HTTP by the wall clock: vLLM's
// endpoints, its event streams and its errors, and under /sim/ what only a
// simulation has.
//
// A [Host] keeps a port, on which lives of a server follow each other. One
// goroutine owns a life's [vllmsim.Server]; handlers talk to it by channel. It
// sleeps until the next event of the server is due, never shorter than a
// millisecond, so that many short steps cost one wake-up; what they produced is
// written to its streams together.
//
// Shapes of answers, their order and their words are those of vLLM 0.32.0
// (vllm/entrypoints/openai, vllm/entrypoints/serve), whatever release the
// metrics page imitates. Every answer carries the header x-simulated: 1.
package serve
