// Package demo closes the loop on a simulated server: it measures, takes the one
// recommendation, restarts the server with it, measures again, keeps or reverts,
// and goes on until nothing is left to recommend. It needs no yes, because the
// server is its own.
//
// The direction of a change is a difference of one run before and one after; it
// knows nothing of noise.
package demo
