package fleet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/fleet"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// choices are the user's settings for the contents of views.
type choices struct {
	order  fleet.Order
	by     fleet.By
	within *within          // the group whose servers are listed, nil for all
	filter string           // of the list, while the page of a server is open
	at     [numViews]cursor // of lists
}

// within names a group.
type within struct {
	by   fleet.By
	name string
}

// cursor is a row of a list: that of a name or, once the name is gone, of an index. The zero cursor is the first
// row.
type cursor struct {
	moved bool
	name  string
	index int
}

// view is what a frame shows of a snapshot.
type view struct {
	l   *fleet.Live
	u   *frame.Settings
	set *choices

	servers []*fleet.Server // rows of the list, in their order
	groups  []fleet.Group
	table   *page.Table // of the current view; nil of a server's page
	all     int         // rows before the filter
	uneven  []page.Text // what is uneven among the servers, or in the group under the cursor
}

// newView returns the view of a snapshot.
func newView(l *fleet.Live, u *frame.Settings, set *choices) *view {
	v := &view{l: l, u: u, set: set}
	list := v.within()
	if u.View == viewGroups {
		v.groups = fleet.Groups(list, set.by)
		v.table, v.all = fleet.GroupsTable(v.groups, set.by), len(v.groups)
		v.groups = kept(v.table, v.groups, u.Filter)
		if len(v.groups) > 0 {
			v.uneven = uneven(v.groups[v.cursor()].Servers, u)
		}
		return v
	}
	v.uneven = uneven(list, u)
	rows := make([]*fleet.Server, len(list))
	for i := range list {
		rows[i] = &list[i]
	}
	set.order.Sort(rows)
	table, filter := fleet.Table(rows, set.order), u.Filter
	v.all = len(rows)
	if u.View == viewServer {
		filter = set.filter
	} else {
		v.table = table
	}
	v.servers = kept(table, rows, filter)
	return v
}

// kept limits a table, and what its rows show, to the rows that contain a text.
func kept[R any](t *page.Table, list []R, text string) []R {
	text = strings.ToLower(strings.TrimSpace(text))
	if text == "" {
		return list
	}
	var rows [][]page.Cell
	var out []R
	for i, row := range t.Rows {
		if slices.ContainsFunc(row, func(c page.Cell) bool {
			return strings.Contains(strings.ToLower(strings.ReplaceAll(c.Text, figure.NBSP, " ")), text)
		}) {
			rows, out = append(rows, row), append(out, list[i])
		}
	}
	t.Rows = rows
	return out
}

// within returns the servers of the chosen group, or all.
func (v *view) within() []fleet.Server {
	in := v.set.within
	if in == nil || v.u.View == viewGroups {
		return v.l.Servers
	}
	for _, g := range fleet.Groups(v.l.Servers, in.by) {
		if g.Name == in.name {
			return g.Servers
		}
	}
	return nil
}

// rows returns the number of rows of the current list.
func (v *view) rows() int {
	if v.u.View == viewGroups {
		return len(v.groups)
	}
	return len(v.servers)
}

// name returns the name of a row.
func (v *view) name(i int) string {
	if v.u.View == viewGroups {
		return v.groups[i].Name
	}
	return v.servers[i].Name
}

// cursor returns the row of the cursor.
func (v *view) cursor() int {
	id := v.u.View
	if id == viewServer {
		id = viewServers
	}
	at := v.set.at[id]
	if at.moved {
		for i := range v.rows() {
			if v.name(i) == at.name {
				return i
			}
		}
	}
	return min(max(at.index, 0), max(0, v.rows()-1))
}

// selected returns the server under the cursor, nil if there is none.
func (v *view) selected() *fleet.Server {
	if v.u.View == viewGroups || len(v.servers) == 0 {
		return nil
	}
	return v.servers[v.cursor()]
}

// draw draws the current view.
func (v *view) draw(p cell.Pane) frame.Extent {
	switch {
	case v.l.Servers == nil:
		return frame.Placeholder(p, v.u, v.placeholder())
	case v.u.View == viewServer:
		return v.server(p)
	}
	return v.list(p)
}

// server draws the page of the server under the cursor.
func (v *view) server(p cell.Pane) frame.Extent {
	list := []page.Section{{Nodes: []page.Node{page.Paragraph(page.Toned(page.Muted, "No server is chosen: esc goes back to the list."))}}}
	if s := v.selected(); s != nil {
		at := page.Toned(page.Muted, figure.NBSP+fmt.Sprintf(" %d of %s", v.cursor()+1, figure.Counted(len(v.servers), "server")))
		head := page.Section{ID: "name", Nodes: []page.Node{page.Paragraph(page.Toned(cell.Title, s.Name), at)}}
		list = append([]page.Section{head}, v.u.Matching(fleet.ServerSections(s))...)
	}
	return frame.Scrolled(p, v.u, frame.NewListing(v.u, p.Width(), p.Width(), list, ""))
}

// placing is where the parts of a list are: lines of findings and the filter above the table, the heading of the
// table, its rows, and what the selected row is about.
type placing struct{ notes, head, rows, brief int }

// Lines of the parts of a list.
const (
	briefLines = 4 // a rule, and three facts about a server
	mostUneven = 8 // about a group
	leastRows  = 5
)

// place lays the list out in h lines: rows first, then what is selected, then what is uneven.
func (v *view) place(h int) placing {
	x := placing{head: 1}
	if v.limited() {
		x.notes++
	}
	room := h - x.head - x.notes - leastRows
	switch {
	case v.u.View == viewGroups && room > 1:
		x.brief = min(room, 1+mostUneven)
	case v.u.View == viewServers && room >= briefLines:
		x.brief = briefLines
		if n := len(v.uneven); n > 0 {
			x.notes += max(0, min(n, h/8, room-briefLines))
		}
	case room > 0:
		x.brief = 1 // the position alone
	}
	x.rows = max(0, h-x.notes-x.head-x.brief)
	return x
}

// limited reports whether the list shows only some rows.
func (v *view) limited() bool {
	return v.u.Filter != "" || v.set.within != nil && v.u.View == viewServers
}

// row returns the row at a line, -1 if there is none.
func (x placing) row(line, first int) int {
	if y := line - x.notes - x.head; y >= 0 && y < x.rows {
		return first + y
	}
	return -1
}

// list draws a table with a cursor.
func (v *view) list(p cell.Pane) frame.Extent {
	x := v.place(p.Height())
	v.notes(p.Sub(0, 0, p.Width(), x.notes))
	n, at := v.rows(), v.cursor()
	// The cursor is visible, and the last page is full.
	first := max(min(v.u.Scroll[v.u.View], at), at-x.rows+1)
	first = max(0, min(first, n-x.rows))
	body := p.Sub(0, x.notes, p.Width(), x.head+x.rows)
	v.narrow()
	lines := v.u.Lines([]page.Section{{Nodes: []page.Node{v.table}}}, p.Width())
	if n == 0 {
		body.Text(2, 0, cell.Muted, "No row.")
	} else {
		v.u.Text(body, 0, lines.From(0, 1))
		rows := body.Sub(0, x.head, p.Width(), x.rows)
		v.u.Text(rows, 0, lines.From(1+first, x.rows))
		if v.old() {
			rows.Tint(cell.Muted)
		}
		rows.Mark(0, p.Width(), at-first, cell.Selected)
	}
	v.brief(p.Sub(0, x.notes+x.head+x.rows, p.Width(), x.brief), first, x.rows)
	return frame.Extent{Lines: n, Page: x.rows, First: first}
}

// narrow lets the columns that the lines below the table repeat go first, and keeps each row on one line.
func (v *view) narrow() {
	last := &v.table.Columns[len(v.table.Columns)-1]
	last.Rank, last.MaxLines = 10, 1
}

// notes draws what is uneven, and what the list is limited to.
func (v *view) notes(p cell.Pane) {
	y := 0
	room := p.Height()
	if v.limited() {
		room--
	}
	for i, text := range v.uneven[:min(len(v.uneven), max(0, room))] {
		if more := len(v.uneven) - room; more > 0 && i == room-1 {
			text = page.Join(page.Toned(page.Muted, fmt.Sprintf("%d more in view %d; ", more, viewGroups+1)), text)
		}
		p.Line(1, y, v.u.Cut(text, p.Width()-2))
		y++
	}
	if !v.limited() || p.Height() == 0 {
		return
	}
	var text page.Text
	if in := v.set.within; in != nil && v.u.View == viewServers {
		name := in.name
		if name == "" {
			name = "unknown"
		}
		text = page.Toned(page.Accent, in.by.String()+" "+name)
		if v.u.Filter == "" {
			text = page.Join(text, page.Toned(page.Muted, ": "+figure.Counted(v.all, "server")+", esc shows all"))
		} else {
			text = page.Join(text, page.Toned(page.Muted, ", "))
		}
	}
	if v.u.Filter != "" {
		text = page.Join(text, frame.Matches(v.rows(), v.all, map[bool]string{true: "group", false: "server"}[v.u.View == viewGroups], strings.TrimSpace(v.u.Filter)))
	}
	p.Line(1, y, v.u.Cut(text, p.Width()-2))
}

// brief draws the position in the list, and the most important facts about the selected server.
func (v *view) brief(p cell.Pane, first, shown int) {
	if p.Height() == 0 {
		return
	}
	p.Sub(0, 0, p.Width(), 1).Fill(cell.Border, v.u.Glyphs.Horizontal)
	if n := v.rows(); n > shown {
		text := fmt.Sprintf(" %d to %d of %s ", first+1, min(first+shown, n), figure.Whole(float64(n)))
		p.Right(p.Width()-1, 0, cell.Muted, text)
	}
	about := p.Sub(0, 1, p.Width(), p.Height()-1)
	if v.u.View == viewGroups {
		v.group(about)
		return
	}
	s := v.selected()
	if s == nil || p.Height() < briefLines {
		return
	}
	p.Text(1, 0, cell.Strong, " "+p.Cut(s.Name, p.Width()/2)+" ")
	v.u.Text(about, 0, v.u.Lines([]page.Section{{Nodes: []page.Node{fleet.Brief(s)}}}, p.Width()).From(0, briefLines-1))
}

// group draws what is uneven in the group under the cursor.
func (v *view) group(p cell.Pane) {
	if len(v.groups) == 0 {
		return
	}
	list := v.uneven
	if len(list) == 0 {
		list = []page.Text{page.Toned(page.Muted, "Nothing is uneven among the servers of this group.")}
	}
	y := 0
	for _, text := range list {
		for _, line := range v.u.Wrap(text, p.Width()-2) {
			p.Line(1, y, line)
			y++
		}
	}
}
