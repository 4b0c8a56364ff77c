// Package probe is a client of OpenAI-compatible servers that keeps time: it
// streams completions, notes when each piece of output arrived, and offers load
// as a closed loop of clients.
//
// It promises that the offered load is a function of its seed, that the
// measuring costs bounded memory whatever the server sends, and that a server
// that fails, stalls or restarts ends no run: errors are counted and described.
// It talks to the address it was given and to no other, follows no redirect and
// uses no proxy.
//
// # What the latencies mean
//
// All are client truth, measured from the moment just before a request is
// handed to the connection; where a new connection has to be made, that is in
// it too. A chunk is one streamed message that carries output. Servers send one
// token a chunk unless they speculate, batch their messages or fall behind.
//
//   - TTFT, time to first token: from send to the first chunk.
//   - ITL, inter-token latency: every gap between two neighbouring chunks of a
//     request. A request of n chunks has n-1 of them.
//   - E2E, end to end: from send to the last chunk.
//   - TPOT, time per output token: (E2E-TTFT)/(n-1) with n output tokens, one
//     value a request; a request of one token has none.
//
// Tokens are those of the server's own usage report, or one a chunk where it
// sends none.
package probe
