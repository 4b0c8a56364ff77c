// Package bench tests rooftop on the scenarios of the simulator, in virtual time: a simulated server,
// its clients and the observer that diagnoses it run on one clock. An hour takes seconds, and equal
// seeds give identical results.
//
// A [World] is the clock with everything that runs on it. [Run] runs a scenario, or a variant of it,
// once. [Bench] compares the diagnosis with the truth, and the effects of changes with those that the
// scenario expects.
//
// Scores reached here are self-tests: simulator and diagnosis have the same authors, although they
// share no code. Only a real server is evidence.
package bench
