// Package optrace makes sense of recorded operator events of GGML runtimes
// (llama.cpp, Ollama and others): tokens, graphs, operators and threads, what each
// costs, what bounds it, and the one thing to change.
//
// A source (collect/ggml) fills a [Tables] and hands over [Event] values in time
// order. An [Assembler] makes [Graph] and [Call] values of them, a [Tally] adds these
// up within bounded memory, and [Tally.Summary] is every figure that a report, a
// screen or a document shows. [WriteRecording] and [ReadRecording] keep events in a
// file: the same events give the same figures again.
//
// The package is pure: it reads no clock and no file by itself. Method: ProfInfer
// (arXiv:2601.20755), with the single hook and the layouts read from the binary that
// ARCHITECTURE.md describes.
package optrace
