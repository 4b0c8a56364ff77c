package optrace

import (
	"encoding/json"
	"time"
)

// OptTime is a length of time that may not have been recorded, which is not the same as
// none. In a document it is nanoseconds, or null. The zero OptTime is absent.
type OptTime struct {
	D  time.Duration // 0 where OK is false
	OK bool
}

// SomeTime is a time that was recorded.
func SomeTime(d time.Duration) OptTime { return OptTime{D: d, OK: true} }

// recordedTime is a sum of times that only some detail records, absent where it was not
// and nothing was added up. What was counted was recorded, even if it is not any more.
func recordedTime(recorded bool, sum time.Duration) OptTime {
	if !recorded && sum == 0 {
		return OptTime{}
	}
	return SomeTime(sum)
}

// Plus is the sum of those that are there, absent where neither is.
func (t OptTime) Plus(o OptTime) OptTime {
	if !t.OK {
		return o
	}
	return SomeTime(plus(t.D, o.D))
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
