package tui

import (
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

func drawRoofline(p cell.Pane, s *engine.Snapshot, u *look) int { return 0 }
