// Package live runs a simulated server with its clients on the caller's clock, without a socket. Tests
// of whole programs attach live sessions to it under a fake clock.
package bench
