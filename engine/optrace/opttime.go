package optrace

import (
	"encoding/json"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// OptTime is a duration that may not have been recorded, as opposed to zero. In a document it
// is nanoseconds or null. The zero OptTime is absent.
type OptTime struct {
	D  time.Duration // 0 if OK is false
	OK bool
}

// SomeTime returns a recorded time.
func SomeTime(d time.Duration) OptTime { return OptTime{D: d, OK: true} }

// RecordedTime returns a sum of times that only some detail records, absent if it was not
// recorded and nothing of it was seen.
func RecordedTime(recorded bool, sum time.Duration) OptTime {
	if !recorded && sum == 0 {
		return OptTime{}
	}
	return SomeTime(sum)
}

// Plus returns the sum of the present times, absent if neither is present.
func (t OptTime) Plus(o OptTime) OptTime {
	if !t.OK {
		return o
	}
	return SomeTime(stat.AddSaturating(t.D, o.D))
}

// MarshalJSON writes nanoseconds, or null.
func (t OptTime) MarshalJSON() ([]byte, error) {
	if !t.OK {
		return []byte("null"), nil
	}
	return json.Marshal(t.D)
}

// UnmarshalJSON reads nanoseconds, or null.
func (t *OptTime) UnmarshalJSON(b []byte) error {
	*t = OptTime{}
	if string(b) == "null" {
		return nil
	}
	t.OK = true
	return json.Unmarshal(b, &t.D)
}
