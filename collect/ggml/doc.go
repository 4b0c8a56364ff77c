// Package ggml watches a running GGML runtime (llama.cpp, Ollama and others) with
// eBPF, unmodified, and hands over what it does as events of engine/optrace.
//
// [Open] attaches at the places that collect/ggml/binary found in the runtime's files;
// [Session.Next] gives events in the order of time, with refs into [Session.Tables];
// [Session.SetDetail] changes what is recorded while attached. Programs are written in
// instructions of eBPF and carry the offsets of GGML's structures, so that neither a
// compiler nor a table of versions is needed. The programs copy raw bytes; a [Decoder]
// makes sense of them here, which is why it can be tested with recorded bytes.
//
// The target is never changed: entries and ends are watched with plain uprobes on their
// instructions. Only the barrier's return has a return probe: a C++ exception that passes
// one ends the process, and in a graph's frame operators of C++ run. All links die with this process, also after a kill -9.
// [Ladder] says what of it this process may do, and what is missing.
package ggml
