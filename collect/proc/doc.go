// Package proc finds the process tree of a vLLM server on this machine and
// reads what it tells of the launch: command line, config file, environment,
// GPUs, and the state of each process.
//
// It reads /proc only, at start and rarely afterwards, and so costs the watched
// server nothing. Everything hangs on an [FS], the mount point of a procfs, so
// that tests read fixtures. On systems without /proc, [Open] says so.
//
// A server is known by its process tree, not by the names of its processes:
// vLLM's children rename themselves, and how depends on the release. No
// formatting of a [Server] shows a secret of its command line or environment.
package proc
