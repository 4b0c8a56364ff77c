// Package rules holds what rooftop knows of bottlenecks: one file a rule, with
// its condition on a window, what it concludes from a run, its confidence and
// its fix with the number. All lists them; Explain says in words what a rule
// does, from the same constants.
//
// Rules are values of package engine, which runs, gates and ranks them. They
// are pure: no clock, file, network or random source, and no knowledge of which
// screen shows them; what they write are plain sentences.
package rules
