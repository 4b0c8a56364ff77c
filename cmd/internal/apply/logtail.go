package apply

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// maxTail is how much of a log's end is read: a traceback of each of a server's
// processes, and more.
const maxTail = 256 << 10

// logTail reads what a server wrote to its log since it started.
type logTail struct {
	file *os.File // that it writes to; nil where its output is no file
	from int64    // size of the file at the start
}

// tailOf begins to follow a file from its present end; nil where f is no regular
// file.
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

// read returns the end of what was written; nil where nothing can be read.
func (t *logTail) read() []byte {
	if t == nil {
		return nil
	}
	// The descriptor is for writing, and the name may lead to another file by now.
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
		from = 0 // it was emptied
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
