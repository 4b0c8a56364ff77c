// Package scenarios is the library of cases that rooftop is tried on: a
// simulated server with its flags and hardware, the load on it, what goes wrong,
// the true diagnosis, the change that must help and one that must not. One YAML
// file is one case of simulator.md section 5.10, on several pairs of model and
// hardware; FORMAT.md describes it.
//
// A scenario says what is true by the mechanism, not what rooftop answers.
package scenarios
