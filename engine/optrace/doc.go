// Package optrace models operator events that were recorded from GGML runtimes (llama.cpp, Ollama and others):
// tokens, graphs, operators and threads, with their costs and bounds.
//
// A source (collect/ggml) fills a [Tables] and emits [Event] values in time order. An [Assembler] builds [Graph]
// and [Call] values from them; package tally adds these up in bounded memory into a [Summary], which has every
// figure that a report or a document shows; package advice names the one change. A recording keeps the events:
// they give the same figures again.
//
// The package is pure: it reads neither a clock nor files. Method: ProfInfer (arXiv:2601.20755), with a single
// hook and layouts that are read from the binary (docs/trace.md).
package optrace
