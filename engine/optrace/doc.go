// Package optrace models operator events that were recorded from GGML runtimes (llama.cpp,
// Ollama and others): tokens, graphs, operators and threads, their costs and bounds, and the
// one recommended change.
//
// A source (collect/ggml) fills a [Tables] and emits [Event] values in time order. Package
// assemble builds [Graph] and [Call] values from them, package tally adds these up in bounded
// memory into a [Summary], which has every figure that a report or a document shows.
// Package recording keeps events in a file: the same events give the same figures again.
//
// The package is pure: it reads neither a clock nor files. Method: ProfInfer
// (arXiv:2601.20755), with the single hook and the layouts read from the binary that
// ARCHITECTURE.md describes.
package optrace
