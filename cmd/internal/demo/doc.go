// Package demo is the simulated server of a demonstration with the clients of its
// scenario, in this process. The loop runs on it as on any other, and may restart
// it as it likes: the server is its own.
package demo
