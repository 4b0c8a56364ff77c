package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// File is the decoded content of a journal.
type File struct {
	Records []Record
	// WholeBytes is the number of bytes in complete lines. Torn is the remainder: a record whose write
	// was interrupted.
	WholeBytes int
	Torn       []byte
	// Unended means that the last record is complete except for its newline.
	Unended bool
	// Damaged are the numbers, from 1, of complete lines that are not records. Their content is
	// lost.
	Damaged []int
	// Newer are the numbers of lines in a schema of a newer rooftop.
	Newer []int
	// Ended is the number of the last line that ends a run, 0 if there is none.
	Ended int
}

// UnreadableTail returns the numbers, ascending, of unreadable lines after the end of the last run. If there
// are any, the records do not determine what should run.
func (f *File) UnreadableTail() []int {
	lines := slices.DeleteFunc(slices.Concat(f.Damaged, f.Newer), func(line int) bool { return line < f.Ended })
	slices.Sort(lines)
	return lines
}

// Decode decodes a journal. It never fails: lines that are not records are listed as damaged.
func Decode(data []byte) File {
	var f File
	for line := 1; len(data) > f.WholeBytes; line++ {
		rest := data[f.WholeBytes:]
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			f.tail(rest, line)
			return f
		}
		if r, err := decode(rest[:end]); err == nil {
			f.add(r, line)
		} else if newer(rest[:end]) {
			f.Newer = append(f.Newer, line)
		} else {
			f.Damaged = append(f.Damaged, line)
		}
		f.WholeBytes += end + 1
	}
	return f
}

func (f *File) add(r Record, line int) {
	f.Records = append(f.Records, r)
	if r.Kind == End {
		f.Ended = line
	}
}

// tail decodes the part after the last newline. An interrupted record lacks its closing brace, so one
// that parses is complete.
func (f *File) tail(rest []byte, line int) {
	r, err := decode(rest)
	switch {
	case err == nil:
		f.add(r, line)
	case newer(rest):
		f.Newer = append(f.Newer, line)
	default:
		f.Torn = bytes.Clone(rest)
		return
	}
	f.WholeBytes += len(rest)
	f.Unended = true
}

// newer reports whether a line is a record in another schema of journals.
func newer(line []byte) bool {
	var r struct{ Schema string }
	return json.Unmarshal(line, &r) == nil && strings.HasPrefix(r.Schema, family) && r.Schema != Schema
}

func decode(line []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(line, &r); err != nil {
		return r, err
	}
	if r.Schema != Schema || r.Kind == "" || r.Seq < 1 {
		return r, errors.New("not a record of a journal")
	}
	return r, nil
}

// Encode encodes a record as one line.
func Encode(r Record) ([]byte, error) {
	r.Schema = Schema
	line, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return append(line, '\n'), nil
}
