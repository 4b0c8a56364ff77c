// Package ggml traces an unmodified, running GGML runtime (llama.cpp, Ollama and others) with
// eBPF, and emits events of engine/optrace.
//
// [Open] attaches at the places that collect/ggml/binary found in the runtime's files;
// [Session.Next] returns events in time order, with refs into [Session.Tables];
// [Session.SetDetail] changes what is recorded while attached. The programs are written as eBPF
// instructions with the offsets of GGML's structures, so neither a compiler nor a table of
// versions is needed. They copy raw bytes; a [Decoder] interprets them in this process, so it
// can be tested with recorded bytes.
//
// The target is never changed: entries and ends are probed with plain uprobes on their
// instructions. Only the barrier's return has a return probe: a C++ exception that passes one
// ends the process, and C++ operators run in a graph's frame. All links end with this process,
// also after a kill -9. [Ladder] reports what this process is permitted to do, and what is
// missing.
package ggml
