// Package journal defines the journal of a server's changes: the types of its records, and the state
// that a sequence of records leads to. A record is written before each action and another one after
// it, so that after a crash the file shows what was in progress and what to restore.
//
// It is pure: cmd/internal/apply handles files, locks and processes.
package journal
