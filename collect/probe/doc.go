// Package probe is a timing client for OpenAI-compatible servers: it streams completions and
// records when each piece of output arrived.
//
// [Client.Send] sends one request and records it in times of the caller's clock; [Client.SendAll]
// sends several. Whatever the server sends, a request in flight stores the times of at most 4
// chunks for each of its tokens and 8 more. The client contacts only the address it was given,
// follows no redirects and uses no proxy.
//
// # What the latencies mean
//
// All latencies are measured at the client. A chunk is one streamed message with output. Servers
// send one token per chunk unless they use speculative decoding, batch their messages or fall
// behind.
//
//   - TTFT, time to first token: from send to the first chunk.
//   - ITL, inter-token latency: every gap between two neighbouring chunks of a
//     request. A request of n chunks has n-1 of them.
//   - E2E, end to end: from send to the last chunk.
//   - TPOT, time per output token: (E2E-TTFT)/(n-1) with n output tokens, one
//     value a request; a request of one token has none.
//
// Times count from the moment just before the request is handed to the connection, so they include
// the setup of a new connection. Token counts come from the server's usage report, or are one per
// chunk if it sends none.
package probe
