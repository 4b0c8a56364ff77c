// Package simlive puts a simulated server with its clients under the clock of
// whoever runs it, without a socket: what a live session attaches to in tests of
// whole programs under a fake clock.
package simlive
