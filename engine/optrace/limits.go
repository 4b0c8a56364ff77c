package optrace

// Limits of what an [Assembler] keeps. A stream that needs more loses the oldest
// graphs, which are counted as partial.
const (
	// maxWorkers is GGML_MAX_N_THREADS (ggml.h), the largest number of compute threads of a
	// graph.
	maxWorkers = 512
	// maxOpenGraphs is the number of concurrent graphs, one for each context of a process.
	maxOpenGraphs = 64
	// maxOpenSpans is the number of spans of all open graphs together, 200 MB: 512 threads and
	// 4,096 operators.
	maxOpenSpans = 1 << 21
	// firstSpans is the initial capacity for spans of an unknown compute thread, and
	// maxFirstSpans the largest initial capacity: the largest models have about 5,000
	// operators.
	firstSpans    = 64
	maxFirstSpans = 2048
	// maxLoose is the number of compute threads that wait for a graph, maxLooseSpans the number
	// of spans of each: a thread that is one step ahead of the first needs two.
	maxLoose      = 1024
	maxLooseSpans = 64
	// maxThreads is the number of threads that are known at once. Runtimes that start new
	// threads for each graph reach it; those of ended graphs are forgotten.
	maxThreads = 8192
	// maxGraphsOfCall is the number of graphs that are listed for a call.
	maxGraphsOfCall = 1 << 16
	// maxNested is the nesting depth of calls, such as llama_decode that calls llama_process.
	maxNested = 4
	// maxRequests is the number of pending disk requests: more than a queue of a fast disk
	// takes.
	maxRequests = 4096
	// maxWakeUps is the number of wake-ups per compute thread and graph that are kept for the
	// distribution.
	maxWakeUps = 64
	// maxUneven is the number of graphs of a DAG that are dropped because their compute threads
	// differ, if they differ from the first graph on.
	maxUneven = 3
	// maxPlaces is the number of DAGs whose addresses are cached.
	maxPlaces = 256
	// maxNewestDAGs is the number of graph addresses whose newest DAG is remembered.
	maxNewestDAGs = 4096
)
