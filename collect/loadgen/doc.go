// Package loadgen sends load to a server, open or closed loop, synthetic or recorded, and
// summarizes the results.
//
// The offered load depends only on its parameters and seed. A server that fails, stalls or restarts
// does not end a run: errors are counted and described. A phase keeps at most 256 distributions, an
// answer in a session at most 4 MiB of text. An open loop has as many requests in flight as the
// server leaves unanswered; a deadline limits them.
//
// An [Offer] decides what to send and when, and has no clock: [Run] drives one by the wall clock, a
// simulation by its own. Requests go through package probe, which defines the latencies.
//
// A [Summary] counts TTFT and E2E from the time at which the schedule wanted the request to be
// sent. Measuring from the actual send would hide the delays of requests that were sent late
// (coordinated omission). The summary has both, and the lag between them.
package loadgen
