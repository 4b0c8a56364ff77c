package optrace

// Limits of what an [Assembler] keeps. A stream that needs more loses the oldest
// graphs, which are counted as partial.
const (
	// maxLanes is GGML_MAX_N_THREADS (ggml.h): no graph is computed by more.
	maxLanes = 512
	// maxOpenGraphs are computed at once, one for each context of a process.
	maxOpenGraphs = 64
	// maxOpenSpans are the spans of all open graphs together, 200 MB: 512 threads and
	// 4,096 operators.
	maxOpenSpans = 1 << 21
	// firstSpans is the room for spans of a lane that nothing is known of, and
	// maxFirstSpans the most that is set aside before there is need: the largest models
	// have about 5,000 operators.
	firstSpans    = 64
	maxFirstSpans = 2048
	// maxLoose lanes wait for a graph, with maxLooseSpans each: a thread that is one
	// step ahead of the first needs two.
	maxLoose      = 1024
	maxLooseSpans = 64
	// maxThreads are known at once. Runtimes that make new threads for each graph go
	// through it, those of ended graphs are forgotten.
	maxThreads = 8192
	// maxGraphsOfCall is a batch of 65,536 parts; more are not listed.
	maxGraphsOfCall = 1 << 16
	// maxNested calls are within one another: llama_decode that calls llama_process.
	maxNested = 4
	// maxRequests of block I/O are under way: more than a queue of a fast disk takes.
	maxRequests = 4096
	// maxWakeUps are kept of a lane in a graph, for their distribution.
	maxWakeUps = 64
	// maxCPUs are known at once, of all processes that are traced: more than a machine has.
	maxCPUs = 8192
	// maxTakings of a CPU are remembered: what happens while one thread is off it. A wait
	// of a second has 333 slices of 3 ms.
	maxTakings = 512
	// maxThieves are told apart in a lane of a graph.
	maxThieves = 256
	// maxUneven graphs of a DAG are dropped because their lanes differ, where they do
	// from the first on.
	maxUneven = 3
	// maxPlaces are the DAGs whose addresses are kept ready.
	maxPlaces = 256
	// maxNewestDAGs are the graph addresses whose newest DAG is remembered.
	maxNewestDAGs = 4096
)
