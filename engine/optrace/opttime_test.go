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
	}{{false, 0, "null"}, {true, 0, "0"}, {true, 5, "5"}} {
		v := RecordedTime(c.recorded, c.sum)
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
