// Package probe is a client of OpenAI-compatible servers that keeps time: it
// streams completions, notes when each piece of output arrived, and offers load,
// open or closed loop, drawn or recorded.
//
// It promises that the offered load is a function of its seed, that a server
// that fails, stalls or restarts ends no run, errors being counted and described,
// and that the load alone bounds the memory, whatever the server sends: a request
// in flight keeps the times of at most its tokens and 8 more chunks, an answer in
// a session at most 4 MiB of text, a phase its distributions, of which there are
// at most 256. An open loop has as many requests in flight as the server leaves
// unanswered; a deadline bounds them.
// It talks to the address it was given and to no other, follows no redirect and
// uses no proxy.
//
// [Client.Examine] tells a single request in full instead, every moment by a clock of
// the caller's, and [Client.ExamineAll] several: at most four chunks for each token
// that was asked for, and 8 more. Both ways read a stream with the same parser.
//
// What to send and when is decided by an [Offer], which has no clock: [Run] drives
// one by the wall clock, a simulation by its own.
//
// # What the latencies mean
//
// All are client truth. A chunk is one streamed message that carries output.
// Servers send one token a chunk unless they speculate, batch their messages or
// fall behind.
//
//   - TTFT, time to first token: from send to the first chunk.
//   - ITL, inter-token latency: every gap between two neighbouring chunks of a
//     request. A request of n chunks has n-1 of them.
//   - E2E, end to end: from send to the last chunk.
//   - TPOT, time per output token: (E2E-TTFT)/(n-1) with n output tokens, one
//     value a request; a request of one token has none.
//
// A [Result] counts from the moment just before the request is handed to the
// connection; where a new connection has to be made, that is in it too. A
// [Summary] counts TTFT and E2E from the time at which the schedule wanted the
// request sent. Where a client measures from the actual send and sends late
// because it was held up, the delays that a person would have seen vanish from its
// figures (coordinated omission); both and the lag between them are told.
//
// Tokens are those of the server's own usage report, or one a chunk where it
// sends none.
package probe
