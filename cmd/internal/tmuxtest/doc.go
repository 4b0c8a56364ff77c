// Package tmuxtest puts a program into a real terminal: a shell in a pane of a
// private tmux server, which tests type into, look at, resize and take away. Only
// end-to-end tests use it: what it waits for takes real time.
package tmuxtest
