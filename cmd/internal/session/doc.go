// Package session runs a measurement or a live session, and plays recordings of both: it polls
// the sources on one clock, writes the recording, and passes the polls to package engine. The
// goroutines and the clock are here; package engine only computes.
//
//	Measure   polls for a fixed time and returns one diagnosis
//	Live      runs a loop.Loop: polls, performs the actions of the loop, publishes snapshots
//	Player    runs the same loop from a recording
//	Replay    diagnoses a recording again
package session
