package apply

import (
	"regexp"
	"strings"
	"unicode"
)

// maxReasonRunes bounds a reason: one sentence of an error message.
const maxReasonRunes = 300

// reasonIn finds the line of a server's log that says why it failed; "" in an empty
// log. What the process that failed first said counts, not what those above it
// make of it. The line may hold secrets.
func reasonIn(log []byte) string {
	text, _ := weighed(log)
	return text
}

// weighed finds the line that says why a server failed, and says whether it speaks
// of a failure at all.
func weighed(log []byte) (text string, failure bool) {
	best, bestRank := "", 0
	for line := range strings.Lines(string(log)) {
		line = bare(line)
		rank, text := ranked(line)
		// Of equals the last: a traceback of causes ends with what came of them, and
		// several starts may share a log.
		if rank > 0 && rank >= bestRank {
			best, bestRank = text, rank
		}
	}
	return clipped(best), bestRank > rankText
}

// Ranks of lines.
const (
	rankText      = iota + 1 // any
	rankError                // logged as an error
	rankFatal                // a message of the loader, a shell, the interpreter
	rankGeneric              // an exception that only tells of another
	rankException            // an exception
	rankCause                // says what is wrong, whatever followed
)

var (
	// escapes are ANSI sequences.
	escapes = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)
	// prefix is what vLLM puts before a line: the process in parentheses, and level,
	// date, time and place: "(EngineCore_DP0 pid=7) ERROR 11-21 10:00:00 [core.py:700] ".
	prefix = regexp.MustCompile(`^\s*(\([A-Za-z_][\w :.-]*pid=\d+\)\s*)*((DEBUG|INFO|WARNING|ERROR|CRITICAL)\s+\d\d-\d\d \d\d:\d\d:\d\d\s+(\[[^\]]*\]\s*)?)?`)
	// exception is the last line of a traceback: a dotted name that ends like one.
	exception = regexp.MustCompile(`^([A-Za-z_][\w]*\.)*[A-Z]\w*(Error|Exception|Exit|Interrupt|Failure|OutOfMemory|Timeout)(:\s|$)`)
	level     = regexp.MustCompile(`\b(ERROR|CRITICAL|FATAL)\b`)
)

// causes are what a server dies of, as vLLM, PyTorch, CUDA, Python and the system
// spell it.
var causes = []*regexp.Regexp{
	regexp.MustCompile(`: error: `),                               // argparse: "vllm serve: error: unrecognized arguments: --x"
	regexp.MustCompile(`(?i)\bout of memory\b|OutOfMemoryError`),  // CUDA, HIP, the system
	regexp.MustCompile(`(?i)address already in use|\[Errno 98\]`), // the port
	regexp.MustCompile(`^(Value|Assertion) error, `),              // pydantic's line below "1 validation error for …"
	regexp.MustCompile(`(?i)No available memory for the cache|larger than the available KV cache memory|is less than desired GPU memory utilization`),
	regexp.MustCompile(`(?i)no space left on device|\[Errno 28\]`),
	regexp.MustCompile(`(?i)(CUDA|NCCL|HIP) error`),
	regexp.MustCompile(`No module named|cannot open shared object file|command not found`),
}

// generic are exceptions that only say that something else failed.
var generic = regexp.MustCompile(`(?i)see (root cause|stack trace|the stack|error)|initialization failed|EngineDeadError|EngineCore encountered|^(asyncio\.|concurrent\.futures\._base\.)?(CancelledError|KeyboardInterrupt|SystemExit)|BrokenPipeError|ConnectionResetError|EOFError|RuntimeError: cancelled|ChildProcessError|torch\.multiprocessing\.spawn`)

// fatal are messages of what is around the server.
var fatal = regexp.MustCompile(`(?i)\b(fatal|killed|segmentation fault|aborted|core dumped|panic:|terminate called|illegal instruction|permission denied|no such file)\b`)

// ranked judges a line without its prefix.
func ranked(line string) (rank int, text string) {
	text = strings.TrimSpace(prefix.ReplaceAllString(line, ""))
	switch {
	case text == "" || strings.Trim(text, "^~-=*. ") == "" || strings.HasPrefix(text, "File \""):
		return 0, ""
	case strings.HasPrefix(text, "Exception ignored in"), strings.Contains(text, "resource_tracker"), strings.Contains(text, "UserWarning"), strings.Contains(text, "FutureWarning"):
		return 0, ""
	case strings.HasPrefix(text, "raise ") || strings.HasPrefix(text, "Traceback (most recent"):
		return 0, ""
	}
	for _, cause := range causes {
		if cause.MatchString(text) {
			return rankCause, text
		}
	}
	switch {
	case generic.MatchString(text):
		return rankGeneric, text
	case exception.MatchString(text):
		return rankException, text
	case fatal.MatchString(text):
		return rankFatal, text
	case level.MatchString(line):
		return rankError, text
	}
	return rankText, text
}

// bare is a line without what would move a terminal's cursor.
func bare(line string) string {
	line = escapes.ReplaceAllString(strings.ToValidUTF8(line, "?"), "")
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
