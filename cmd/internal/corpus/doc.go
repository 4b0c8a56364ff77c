// Package corpus is the frozen corpus of rooftop's output: command lines that use the recordings in
// the repository, and everything they print and write. A test of cmd/rooftop compares the current
// code with testdata/corpus, and the program compare compares two builds.
//
// The package does not import other packages of rooftop: a case is only a command line, so that the
// corpus survives any internal change.
package corpus
