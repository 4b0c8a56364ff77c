package tuning

import (
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
)

// FreshnessTone returns the tone of a source's state.
func FreshnessTone(f loop.Freshness) page.Tone {
	return [...]page.Tone{page.Muted, page.OK, page.Warn, page.Bad}[min(f, loop.SourceFailing)]
}

// LevelTone returns the tone of a journal entry.
func LevelTone(l loop.Level) page.Tone {
	return [...]page.Tone{page.Muted, page.OK, page.Warn, page.Bad}[min(l, loop.LevelBad)]
}
