// Package apply changes a server, and can undo it: a child process of its own, the
// process that was found, restarted in place, or a program of the engineer's that
// does it. Nothing here runs without an explicit yes, and nothing is touched before
// it stands in the journal.
//
//	Hands    one way to change a server: Exec, Attach, Hook
//	Store    the directory of a server: lock, journal, exact launches
//	Recover  what a crash left, and the kept launch put back
//
// An act is written down before it and its result after it, each record synced, so
// that a rooftop that was killed at any instant leaves a journal that tells what
// was under way. An exact launch holds secrets (environment, API keys): it lies in
// files that only their owner reads, and nowhere else.
package apply
