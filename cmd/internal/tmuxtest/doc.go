// Package tmuxtest runs programs in a real terminal: a shell in a pane of a private tmux server.
// Tests can type, read the screen, resize and close the pane. Only end-to-end tests use it, because
// waiting takes real time.
package tmuxtest
