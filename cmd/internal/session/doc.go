// Package session runs a measurement: it polls the sources on one clock, keeps
// the record, and hands the polls to the engine. It owns the goroutines; the
// engine owns the reasoning.
package session
