package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// File is what a journal's bytes hold.
type File struct {
	Records []Record
	// Whole is how many bytes hold whole lines; Torn is what stands behind them: a
	// record whose writing was cut short.
	Whole int
	Torn  []byte
	// Unended says that the last record is whole but for its line's end.
	Unended bool
	// Damaged are the numbers of whole lines, from 1, that are no record. What they
	// said is lost.
	Damaged []int
	// Newer are the numbers of lines that a later rooftop wrote, in a schema of its own.
	Newer []int
	// Ended is the number of the line that ends a run last, 0 without one.
	Ended int
}

// Unsure lists the lines behind the end of the last run that cannot be read, in their
// order. Where there are any, the records do not tell what is to run.
func (f *File) Unsure() []int {
	lines := slices.DeleteFunc(slices.Concat(f.Damaged, f.Newer), func(line int) bool { return line < f.Ended })
	slices.Sort(lines)
	return lines
}

// Decode reads the bytes of a journal. It reads any: what is no record is said to
// be none.
func Decode(data []byte) File {
	var f File
	for line := 1; len(data) > f.Whole; line++ {
		rest := data[f.Whole:]
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
		f.Whole += end + 1
	}
	return f
}

func (f *File) add(r Record, line int) {
	f.Records = append(f.Records, r)
	if r.Kind == End {
		f.Ended = line
	}
}

// tail takes in what has no line's end. A record that is cut short anywhere lacks
// its last brace, so one that can be read is whole.
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
	f.Whole += len(rest)
	f.Unended = true
}

// newer says that a line is a record of another schema of journals.
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

// Encode writes a record as one line.
func Encode(r Record) ([]byte, error) {
	r.Schema = Schema
	line, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return append(line, '\n'), nil
}
