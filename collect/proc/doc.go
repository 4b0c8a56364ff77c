// Package proc finds the process tree of a vLLM server on this machine and
// reads its launch: command line, config file, environment,
// GPUs, and the state of each process.
//
// It reads only /proc, at start and rarely afterwards, so it costs the observed
// server nothing. Every read goes through an [FS], a mounted procfs, so that tests
// can read fixtures. On systems without /proc, [Open] returns [ErrUnsupported].
//
// A server is identified by its process tree, not by the names of its processes:
// vLLM's children rename themselves, differently in each release. Formatting a
// [Server] with any verb shows no secret of its command line or environment.
package proc
