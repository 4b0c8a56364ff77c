package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// Follower tells a run as it happens: to a person in lines, or to a script as
// events. The first write error ends the telling and is kept.
type Follower interface {
	Event(e engine.Event)
	Err() error
}

var (
	_ Follower = (*Events)(nil)
	_ Follower = (*Narrator)(nil)
)

// unreadable stands for a change that nobody can name.
const unreadable = "settings that cannot be read"

// spelled writes changes as a person would say them.
func spelled(list ...engine.Change) string {
	var parts []string
	for _, c := range list {
		if c.Flag != "" {
			parts = append(parts, strings.ReplaceAll(c.String(), " → ", nbsp+"→"+nbsp)) // held together
		}
	}
	return cmp.Or(strings.Join(parts, ", "), unreadable)
}

// clock spells a time since the start of a run as a stopwatch shows it: 0:07,
// 12:30, 1:00:05.
func clock(t time.Duration) string {
	s := int(max(t, 0).Round(time.Second) / time.Second)
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// lasted spells a length of time in words: 12 s, 4 min 12 s, 2 h 5 min.
func lasted(t time.Duration) string { return engine.SpellTime(t) }

// served names a server in a few words.
func served(t engine.Target) string {
	engineOf := strings.TrimSpace(engineName(t.Engine) + " " + t.EngineVersion)
	s := cmp.Or(t.Model, "a server")
	if engineOf != "" {
		s += " on " + engineOf
	}
	if t.URL != "" {
		s += ", " + t.URL
	}
	return s
}
