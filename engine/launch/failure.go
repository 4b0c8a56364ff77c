package launch

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// maxReasonRunes limits a reason to about a sentence.
const maxReasonRunes = 300

// FailureReason returns the line of a server's log that says why it failed; "" for an empty
// log. It prefers the message of the process that failed first over those of its parents.
// The line may hold secrets.
func FailureReason(log []byte) string {
	text, _ := WeighFailure(log)
	return text
}

// WeighFailure returns the line that best says why a server failed, and whether it describes a
// failure at all.
func WeighFailure(log []byte) (text string, failure bool) {
	best, bestRank := "", 0
	for line := range strings.Lines(string(log)) {
		line = bare(line)
		rank, text := ranked(line)
		// Among equal ranks the last counts: a chained traceback ends with the final exception,
		// and several starts may share a log.
		if rank > 0 && rank >= bestRank {
			best, bestRank = text, rank
		}
	}
	return clipped(best), bestRank > rankText
}

// Ranks of lines.
const (
	rankText      = iota + 1 // any text
	rankError                // logged as an error
	rankFatal                // a message of the loader, a shell or the interpreter
	rankGeneric              // an exception that only refers to another
	rankException            // an exception
	rankCause                // a message that names the cause
)

// Patterns are compiled when the first log is read: they take 0.1 MB, and few processes read one.
var (
	// escapes are ANSI sequences.
	escapes = compiled(`\x1b\[[0-9;?]*[A-Za-z]`)
	// prefix is the prefix of vLLM's log lines: the process in parentheses, then level, date,
	// time and source: "(EngineCore_DP0 pid=7) ERROR 11-21 10:00:00 [core.py:700] ".
	prefix = compiled(`^\s*(\([A-Za-z_][\w :.-]*pid=\d+\)\s*)*((DEBUG|INFO|WARNING|ERROR|CRITICAL)\s+\d\d-\d\d \d\d:\d\d:\d\d\s+(\[[^\]]*\]\s*)?)?`)
	level  = compiled(`\b(ERROR|CRITICAL|FATAL)\b`)
)

// compiled returns a function that returns the compiled pattern.
func compiled(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// patterns rank the error messages of vLLM, PyTorch, CUDA, Python and the system. The first
// match counts.
var patterns = []struct {
	rank    int
	pattern func() *regexp.Regexp
}{
	{rankCause, compiled(`: error: `)},                               // argparse: "vllm serve: error: unrecognized arguments: --x"
	{rankCause, compiled(`(?i)\bout of memory\b|OutOfMemoryError`)},  // CUDA, HIP, the system
	{rankCause, compiled(`(?i)address already in use|\[Errno 98\]`)}, // the port
	{rankCause, compiled(`^(Value|Assertion) error, `)},              // pydantic's line below "1 validation error for …"
	{rankCause, compiled(`(?i)No available memory for the cache|larger than the available KV cache memory|is less than desired GPU memory utilization`)},
	{rankCause, compiled(`(?i)no space left on device|\[Errno 28\]`)},
	{rankCause, compiled(`(?i)(CUDA|NCCL|HIP) error`)},
	{rankCause, compiled(`No module named|cannot open shared object file|command not found`)},
	// Exceptions that only report the failure of something else.
	{rankGeneric, compiled(`(?i)see (root cause|stack trace|the stack|error)|initialization failed|EngineDeadError|EngineCore encountered|^(asyncio\.|concurrent\.futures\._base\.)?(CancelledError|KeyboardInterrupt|SystemExit)|BrokenPipeError|ConnectionResetError|EOFError|RuntimeError: cancelled|ChildProcessError|torch\.multiprocessing\.spawn`)},
	// The last line of a traceback: a dotted name with the ending of an exception.
	{rankException, compiled(`^([A-Za-z_][\w]*\.)*[A-Z]\w*(Error|Exception|Exit|Interrupt|Failure|OutOfMemory|Timeout)(:\s|$)`)},
	// Messages of the system, a shell or the loader.
	{rankFatal, compiled(`(?i)\b(fatal|killed|segmentation fault|aborted|core dumped|panic:|terminate called|illegal instruction|permission denied|no such file)\b`)},
}

// ranked returns the rank of a line, 0 if it never counts, and the line without its prefix.
func ranked(line string) (rank int, text string) {
	text = strings.TrimSpace(prefix().ReplaceAllString(line, ""))
	switch {
	case text == "" || strings.Trim(text, "^~-=*. ") == "" || strings.HasPrefix(text, "File \""):
		return 0, ""
	case strings.HasPrefix(text, "Exception ignored in"), strings.Contains(text, "resource_tracker"), strings.Contains(text, "UserWarning"), strings.Contains(text, "FutureWarning"):
		return 0, ""
	case strings.HasPrefix(text, "raise ") || strings.HasPrefix(text, "Traceback (most recent"):
		return 0, ""
	}
	for _, p := range patterns {
		if p.pattern().MatchString(text) {
			return p.rank, text
		}
	}
	if level().MatchString(line) {
		return rankError, text
	}
	return rankText, text
}

// bare returns a line without escape sequences and control characters.
func bare(line string) string {
	line = escapes().ReplaceAllString(strings.ToValidUTF8(line, "?"), "")
	return strings.TrimRight(strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsPrint(r), unicode.IsSpace(r):
			return r
		}
		return '?'
	}, line), "\r\n ")
}

func clipped(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > maxReasonRunes {
		return string(runes[:maxReasonRunes]) + "…"
	}
	return s
}
