package optrace

import (
	"encoding/json"
	"testing"
	"time"
)

func TestOptTimeTellsNoneFromNotRecorded(t *testing.T) {
	for _, c := range []struct {
		recorded bool
		sum      time.Duration
		json     string
	}{{false, 0, "null"}, {true, 0, "0"}, {true, 5, "5"}, {false, 5, "5"}} {
		v := recordedTime(c.recorded, c.sum)
		b, err := json.Marshal(v)
		if err != nil || string(b) != c.json {
			t.Errorf("recorded %t, %d: %s, %v, want %s", c.recorded, c.sum, b, err, c.json)
		}
		back := SomeTime(7)
		if err := json.Unmarshal(b, &back); err != nil || back != v {
			t.Errorf("%s comes back as %+v, %v", b, back, err)
		}
	}
	if v := (OptTime{}).Plus(OptTime{}); v.OK {
		t.Errorf("nothing and nothing is %+v", v)
	}
	if v := SomeTime(2).Plus(SomeTime(3)); v != SomeTime(5) {
		t.Errorf("2 and 3 are %+v", v)
	}
}

// TestRowsSayNothingOfWhatNoDetailRecords holds waits and time off the CPU absent at
// levels that do not see them, and 0 at those that do.
func TestRowsSayNothingOfWhatNoDetailRecords(t *testing.T) {
	tables := &Tables{Operators: []Operator{{Op: "ADD"}}}
	tally := NewTally(tables)
	tally.Graph(&Graph{Call: -1, Phase: PhaseDecode, Tokens: 1, End: time.Millisecond, Lanes: []Lane{{TID: 1, Spans: []Span{{Operator: 1, End: time.Millisecond}}}}})
	for _, c := range []struct {
		d         Detail
		sync, off OptTime
	}{{LevelOperator, OptTime{}, OptTime{}}, {LevelOperator | DetailSched, OptTime{}, SomeTime(0)}, {LevelOperator | DetailBarrier, SomeTime(0), OptTime{}}} {
		row := tally.Summary(Settings{Detail: c.d}).Kinds[0]
		if row.Sync != c.sync || row.Off != c.off {
			t.Errorf("%s: waits %+v, off the CPU %+v, want %+v and %+v", c.d, row.Sync, row.Off, c.sync, c.off)
		}
	}
}
