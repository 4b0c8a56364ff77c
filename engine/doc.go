// Package engine is the analysis core of rooftop. It turns samples into windows,
// windows into a run, and a run with the facts of the server into a diagnosis with
// at most one recommendation.
//
// It is pure: it reads no clock, file, socket, environment or global random source,
// and imports neither collect, rules, tui nor cmd. Time comes with the samples, rules
// are passed as values. The same samples give the same diagnosis.
package engine
