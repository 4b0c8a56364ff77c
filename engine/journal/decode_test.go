package journal

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine"
)

func line(t *testing.T, r Record) []byte {
	t.Helper()
	data, err := Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestDecodeReadsAnyBytes(t *testing.T) {
	at := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	first := Record{Schema: Schema, Seq: 1, Time: at, Run: "a", Kind: Begin, Mode: "exec"}
	second := Record{Schema: Schema, Seq: 2, Time: at, Run: "a", Kind: Stopped}
	last := Record{Schema: Schema, Seq: 3, Time: at, Run: "a", Kind: End}
	one, two, three := line(t, first), line(t, second), line(t, last)
	next := []byte(`{"schema":"rooftop.journal/v2","seq":"third"}` + "\n")
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for name, c := range map[string]struct {
		data []byte
		want File
	}{
		"empty":                       {nil, File{}},
		"two records":                 {join(one, two), File{Records: []Record{first, second}, WholeBytes: len(one) + len(two)}},
		"second cut short":            {join(one, two[:20]), File{Records: []Record{first}, WholeBytes: len(one), Torn: two[:20]}},
		"without its line's end":      {join(one, two[:len(two)-1]), File{Records: []Record{first, second}, WholeBytes: len(one) + len(two) - 1, Unended: true}},
		"zeros after a power cut":     {join(one, make([]byte, 8)), File{Records: []Record{first}, WholeBytes: len(one), Torn: make([]byte, 8)}},
		"a line that is not a record": {join(one, []byte("rubbish\n"), two), File{Records: []Record{first, second}, WholeBytes: len(one) + 8 + len(two), Damaged: []int{2}}},
		"another program's JSON":      {[]byte("{}\n"), File{WholeBytes: 3, Damaged: []int{1}}},
		"first cut short":             {one[:3], File{Torn: one[:3]}},
		"a later rooftop's line":      {join(one, next), File{Records: []Record{first}, WholeBytes: len(one) + len(next), Newer: []int{2}}},
		"the same, unended":           {next[:len(next)-1], File{WholeBytes: len(next) - 1, Newer: []int{1}, Unended: true}},
		"an end":                      {join(one, three, next), File{Records: []Record{first, last}, WholeBytes: len(one) + len(three) + len(next), Newer: []int{3}, Ended: 2}},
		"an end without its own":      {three[:len(three)-1], File{Records: []Record{last}, WholeBytes: len(three) - 1, Unended: true, Ended: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, Decode(c.data)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// A run with an end record is over, whatever else can be read. Records after it are not.
func TestRecordsAfterTheLastEndAreUnsure(t *testing.T) {
	for name, c := range map[string]struct {
		file File
		want []int
	}{
		"all read":                 {File{Ended: 4}, nil},
		"before the end":           {File{Damaged: []int{1, 3}, Newer: []int{2}, Ended: 4}, nil},
		"behind it, of both kinds": {File{Damaged: []int{1, 6}, Newer: []int{5}, Ended: 4}, []int{5, 6}},
		"in an unfinished journal": {File{Damaged: []int{2}}, []int{2}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.file.UnreadableTail(); !slices.Equal(got, c.want) {
				t.Errorf("lines %v, want %v", got, c.want)
			}
		})
	}
}

// Wherever a journal is cut off, exactly the complete records are read.
func TestEveryCutKeepsWholeRecords(t *testing.T) {
	var data []byte
	var ends []int
	for seq := 1; seq <= 6; seq++ {
		data = append(data, line(t, Record{Seq: seq, Run: "a", Kind: Intent, Text: "quote \" brace } newline \n", Changes: []engine.Change{{Flag: "--max-num-seqs", From: "4", To: "32"}}})...)
		ends = append(ends, len(data))
	}
	for cut := range len(data) + 1 {
		want := 0
		for _, end := range ends {
			if cut >= end-1 { // all but the line's end
				want++
			}
		}
		f := Decode(data[:cut])
		if len(f.Records) != want || len(f.Damaged) != 0 || f.WholeBytes+len(f.Torn) != cut {
			t.Fatalf("cut at %d: %d records, want %d; damaged %v; %d whole and %d torn bytes", cut, len(f.Records), want, f.Damaged, f.WholeBytes, len(f.Torn))
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"schema":"rooftop.journal/v1","seq":1,"time":"2026-11-21T08:00:00Z","run":"a","kind":"begin"}` + "\n{\"schema\":"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got := Decode(data)
		if got.WholeBytes+len(got.Torn) != len(data) {
			t.Fatalf("%d whole and %d torn bytes of %d", got.WholeBytes, len(got.Torn), len(data))
		}
		s := Reduce(got.Records)
		if s.Open && s.Run != got.Records[len(got.Records)-1].Run {
			t.Fatal("the open run is not the last")
		}
	})
}
