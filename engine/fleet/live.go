package fleet

import "time"

// Live is the state of a list of servers that are read again and again. Times count from the start.
type Live struct {
	Source  string   // where they are read from
	Servers []Server // ranked; nil before the first reading
	Now     time.Duration
	Read    time.Duration // when the reading that Servers come from ended
	Every   time.Duration // pause between readings

	Reading   bool // a reading is in progress
	Began     time.Duration
	Done, All int // servers read by it; All is 0 while it is not known how many there are

	Failed   string // why the latest reading failed as a whole, "" if it did not
	FailedAt time.Duration
}

// Age returns how old the list is.
func (l *Live) Age() time.Duration { return l.Now - l.Read }
