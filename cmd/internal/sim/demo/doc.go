// Package demo runs the simulated server of a demonstration and the clients of its scenario in this
// process. The loop reads it like any other server and may restart it.
package demo
