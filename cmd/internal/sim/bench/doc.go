// Package bench is a virtual clock with a simulated server and its clients: an hour takes seconds, and equal seeds
// give identical results. Its tests try rooftop on the scenarios of the simulator: they compare the diagnosis with
// the truth, and the effects of changes with those that a scenario expects.
//
// Scores reached here are self-tests: simulator and diagnosis have the same authors, although they
// share no code. Only a real server is evidence.
package bench
