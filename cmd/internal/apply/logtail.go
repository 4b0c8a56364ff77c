package apply

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
)

// maxTail is the most bytes read from the end of a log, more than the tracebacks of all
// processes of a server.
const maxTail = 256 << 10

// openLog opens a log for appending; only its owner can read it.
func openLog(path string) (*os.File, error) {
	return launcher.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

// openServerLog opens the log of a server in its directory.
func openServerLog(dir string) (*os.File, error) {
	log, err := openLog(filepath.Join(dir, serverLog))
	if err != nil {
		return nil, fmt.Errorf("the server's log: %w", err)
	}
	return log, nil
}

// logTail reads what a server wrote to its log since its start.
type logTail struct {
	file *os.File // the log
	from int64    // size of the file at the start
}

// limitLog drops all but the end of a log whenever it exceeds maxHookLog, until the returned function is called.
func limitLog(log *os.File) (stop func()) {
	shorten := func() {
		info, err := log.Stat()
		if err != nil || info.Size() <= maxHookLog {
			return
		}
		end := (&logTail{file: log}).read()
		// What is written after the read is lost, so a busy program is given time.
		if now, err := log.Stat(); err != nil || now.Size() != info.Size() && now.Size() < 8*maxHookLog {
			return
		}
		if log.Truncate(0) == nil {
			_, _ = log.Write(append(fmt.Appendf(nil, "rooftop dropped what came before, because this file exceeded %d MiB\n", maxHookLog>>20), end...))
		}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(hookLogPoll)
		defer tick.Stop()
		for {
			select {
			case <-done:
				shorten()
				return
			case <-tick.C:
				shorten()
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// tailOf returns a logTail that begins at the current end of a file; nil if f is nil or not
// a regular file.
func tailOf(f *os.File) *logTail {
	if f == nil {
		return nil
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return &logTail{file: f, from: info.Size()}
}

// read returns at most the last maxTail bytes written since the start, without a partial
// first line; nil if the log cannot be read.
func (t *logTail) read() []byte {
	if t == nil {
		return nil
	}
	// The descriptor is write-only, and the name may lead to another file by now.
	f, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", t.file.Fd()))
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	from := t.from
	if info.Size() < from {
		from = 0 // the file was truncated
	}
	from = max(from, info.Size()-maxTail)
	data, err := io.ReadAll(io.NewSectionReader(f, from, maxTail))
	if err != nil {
		return nil
	}
	if from > t.from {
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	return data
}
