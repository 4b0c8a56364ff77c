package frame

import (
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// placeholderCells is the maximum width of a placeholder.
const placeholderCells = 78

// Placeholder draws what is shown instead of a view while there is nothing to show.
func Placeholder(p cell.Pane, u *Settings, list []page.Section) Extent {
	return Scrolled(p.Sub(0, 1, p.Width(), p.Height()-1), u, NewListing(u, p.Width(), placeholderCells, list, ""))
}

// Steps returns what a user can do: commands or keys, and what they do.
func Steps(list [][2]string) *page.Table {
	return page.Tabulate(list, []page.Field[[2]string]{
		page.Left("", page.Accent, func(step [2]string) string { return step[0] }),
		page.Left("", page.Body, func(step [2]string) string { return step[1] }),
	})
}
