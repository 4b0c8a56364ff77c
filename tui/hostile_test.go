package tui

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/rooftop-dev/rooftop/tui/screentest"

	"github.com/rooftop-dev/rooftop/engine/longtest"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// TestHostileSnapshots draws snapshots that are inconsistent, partly empty, and full of invalid
// numbers. There must always be a frame.
func TestHostileSnapshots(t *testing.T) {
	all := builders()
	seeds := 500
	if !longtest.Tests {
		seeds = 50
	}
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 5))
		f := all[r.IntN(len(all))]
		s := f.build()
		if s == nil {
			continue
		}
		sp := &screentest.Spoiler{Rand: r, Odds: screentest.Pick(r, 3, 10, 40, 200)}
		snap := sp.Spoil(reflect.ValueOf(*s)).Interface().(loop.Snapshot)
		snap.Phase = loop.Phase(r.IntN(int(loop.NumPhases)))
		w, h := screentest.Pick(r, 20, 36, 60, 80, 101, 120, 171, 200, 250), screentest.Pick(r, 6, 16, 24, 31, 45, 60)
		for v := range numViews {
			u := &frame.Settings{Glyphs: screentest.Pick(r, cell.Unicode(), cell.ASCII()), View: v, Filter: screentest.Pick(r, "", "slot"), Over: screentest.Pick(r, frame.OverlayNone, frame.OverlayNone, frame.OverlayHelp)}
			u.Scroll[v] = screentest.Pick(r, 0, 3, frame.ToEnd)
			func() {
				defer func() {
					if p := recover(); p != nil {
						t.Fatalf("seed %d, %s, view %s at %dx%d: %v", seed, f.name, views()[v].name, w, h, p)
					}
				}()
				c, _ := drawRun(&snap, u, w, h)
				if err := screentest.CheckFrame(c.Plain(), w, h); err != nil {
					t.Fatalf("seed %d, %s, view %s at %dx%d: %v\n%s", seed, f.name, views()[v].name, w, h, err, c.Plain())
				}
			}()
		}
	}
}
