// Package tui is the live screen. It draws engine snapshots and sends commands. It never blocks,
// reads no file, makes no network call and keeps no history: a frame depends only on the snapshot,
// the user's settings and the terminal size.
package tui
