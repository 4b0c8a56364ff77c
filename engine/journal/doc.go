// Package journal is what is written down of a server's changes, and what follows
// from it: the record types, and the state that a sequence of them leads to. A
// record is written before an act and another after it, so that whoever reads the
// file after a crash knows what was under way and what to put back.
//
// It is pure: files, locks and processes are the business of cmd/internal/apply.
package journal
