// Package session runs a measurement, a live session, or a recording of either: it
// polls the sources on one clock, keeps the record, and hands the polls to the
// engine. It owns the goroutines; the engine owns the reasoning.
//
//	Measure   polls for a time, diagnoses once
//	Live      owns an engine.Loop: polls, does what the loop asks for, publishes
//	Player    the same loop, told by a recording
//	Snapshots the same without waiting
package session
