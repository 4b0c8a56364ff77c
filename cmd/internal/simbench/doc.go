// Package simbench tries rooftop on the scenarios of the simulator, in virtual
// time: one clock, on which a simulated server, its clients and the observer that
// diagnoses it take turns. An hour passes in seconds, and equal seeds give equal
// bytes.
//
// A [World] is the clock with what lives on it. [Run] lets a scenario, or a
// variant of it, happen once; [Bench] compares the diagnosis with the truth, and
// what changes bring with what the scenario says that they must.
//
// Scores reached here are self-tests: simulator and diagnosis are written by the
// same hands, though they share no code. A real server decides.
package simbench
