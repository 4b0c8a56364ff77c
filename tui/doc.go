// Package tui is the live screen. It draws engine snapshots and sends commands;
// it never blocks, reads no file, calls no network and keeps no history: a frame
// is a function of the snapshot, of what the person at the keys has set, and of
// the size of the terminal.
package tui
