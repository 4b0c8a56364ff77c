package journal

import (
	"bytes"
	"encoding/json"
	"errors"
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
	// Damaged are the numbers of whole lines, from 1, that are no record. They are
	// passed over: what they said is lost, the others still count.
	Damaged []int
}

// Decode reads the bytes of a journal. It reads any: what is no record is said to
// be none.
func Decode(data []byte) File {
	var f File
	for line := 1; len(data) > f.Whole; line++ {
		rest := data[f.Whole:]
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			f.tail(rest)
			return f
		}
		if r, err := decode(rest[:end]); err == nil {
			f.Records = append(f.Records, r)
		} else {
			f.Damaged = append(f.Damaged, line)
		}
		f.Whole += end + 1
	}
	return f
}

// tail takes in what has no line's end. A record that is cut short anywhere lacks
// its last brace, so one that can be read is whole.
func (f *File) tail(rest []byte) {
	r, err := decode(rest)
	if err != nil {
		f.Torn = bytes.Clone(rest)
		return
	}
	f.Records = append(f.Records, r)
	f.Whole += len(rest)
	f.Unended = true
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
