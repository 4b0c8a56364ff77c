// Package engine is the reasoning of rooftop: samples become windows, windows a
// run, a run with the facts of the server a diagnosis with one recommendation.
//
// It is pure. It reads no clock, file, socket, environment or global random
// source, and imports neither collect, rules, tui nor cmd: time comes in with
// the samples, rules as values. The same samples give the same diagnosis.
package engine
