// Package report writes what rooftop found: one engine.Diagnosis as a page of
// plain text or as the document rooftop.diagnosis/v1, a ceiling without a
// server, and the small pages of doctor, explain and catalog.
//
// It formats and decides nothing: every number, name and verdict comes from the
// engine. Text that came from a server or a user is never trusted: control
// characters do not reach the terminal. Nothing here reads a clock, a file, the
// environment or the terminal; the caller says how wide and how colourful.
package report
