// Package scenarios is the library of cases on which rooftop is tested: a simulated server with its flags and
// hardware, the load on it, its faults, the correct diagnosis, a change that must help and one that must not.
// A YAML file contains one case, on several pairs of model and hardware; FORMAT.md describes it.
//
// The truth of a scenario follows from its mechanism, not from rooftop's answer.
package settings
