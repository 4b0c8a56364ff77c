package page

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Series is a heat map: rows of values along one axis, such as the layers of a model.
type Series struct {
	ID, Title string
	Desc      string // description for documents
	Rows      []SeriesRow
	Noun      string   // what a column is, such as "layer"
	Ends      []string // names of the columns, or nil
}

// SeriesRow is one row of a series.
type SeriesRow struct {
	Label       string
	Values      []stat.Opt       // 0 to 1, the full height
	Highlighted map[int]bool     // indexes of highlighted values
	Tooltip     func(int) string // text for the value at an index, for documents
	Note        string           // beside or below the row
	Detail      bool             // shown only in verbose output
}

// Timeline shows the activity of each lane over a period of time.
type Timeline struct {
	ID, Title string
	Desc      string // description for documents
	Total     time.Duration
	Lanes     []Lane
	States    [3]string // names of the states working, waiting and off CPU
	Keys      []Key
}

// Lane is one row of a timeline.
type Lane struct {
	Label, Note string
	Stretches   func() []Stretch
	Tooltip     func(int) string // text for the stretch at an index, for documents
}

// Stretch is the activity of a lane from one time to another. Its waiting time is drawn at the
// end, its time off CPU before that.
type Stretch struct {
	From, To, Wait, Off time.Duration
	Class               string
}

// Key is a legend entry: the label of a class.
type Key struct{ Class, Label string }

// Plot is a picture for documents. Terminals show TerminalNode instead; it is nil where a table
// of the page has the same figures.
type Plot struct {
	ID, Title string
	Desc      string // description for documents
	Empty     string // why there is nothing to draw, or ""
	X, Y      Axis
	Bands     []Band
	Rules     []Rule
	Dots      []Dot
	Curves    []Curve
	// Bars are horizontal. A plot has either bars, or dots and curves.
	Bars         []PlotBar
	Keys         []Key
	TerminalNode Node
}

// Axis is an axis of a plot.
type Axis struct {
	Title string
	Unit  string // unit of [figure.Amount]; "clock" for elapsed time
	Log   bool   // logarithmic; From and To are above 0
	// From and To are the smallest and the largest value. Unless Exact is set, the axis
	// begins at 0 (a logarithmic one at a round number) and ends at a round number.
	From, To float64
	Exact    bool
	Ticks    []float64 // nil lets the renderer choose
}

// Band is a shaded range of the x axis.
type Band struct {
	From, To     float64
	Class, Label string
}

// Rule is a vertical line at X.
type Rule struct {
	X              float64
	Class, Tooltip string
}

// Dot is a point of a plot.
type Dot struct {
	X, Y, Radius   float64
	Class, Tooltip string
	Label          string // written beside the dot where there is room, or ""
}

// Curve is a line through points, each {x, y}.
type Curve struct {
	Class  string
	Points [][2]float64
}

// PlotBar is a bar between two values. Where they are above 0, Max is drawn as a whisker and
// Mean as a dot.
type PlotBar struct {
	Label, ValueLabel, Class, Tooltip string
	From, To, Max, Mean               float64
}
