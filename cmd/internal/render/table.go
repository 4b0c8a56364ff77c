package render

import (
	"strings"

	"github.com/rooftop-dev/rooftop/engine/page"
)

// table is the tabular form of a node in documents: facts, findings, or a table with all rows and the columns that
// have a value.
type table struct {
	Heads   []string
	Right   []bool // numeric columns
	Rows    [][]string
	Classes []string // class of the first cell of each row, or nil
}

func tableOf(n page.Node) *table {
	t := &table{}
	switch n := n.(type) {
	case page.Facts:
		t.Heads, t.Right = []string{"", ""}, []bool{false, false}
		for _, f := range n {
			t.Rows, t.Classes = append(t.Rows, []string{f.Label, f.Text.String()}), append(t.Classes, page.Muted.Name())
		}
	case page.Findings:
		t.Heads, t.Right = []string{"", "finding", "evidence"}, []bool{false, false, false}
		for _, f := range n {
			t.Rows, t.Classes = append(t.Rows, []string{f.Word, f.Title.String(), strings.Join(f.Evidence, " ")}), append(t.Classes, f.Tone.Name())
		}
	case *page.Table:
		t.Rows = make([][]string, len(n.Rows))
		for _, c := range n.ShownColumns(n.Rows) {
			if n.Columns[c].Bar {
				continue
			}
			t.Heads, t.Right = append(t.Heads, n.Columns[c].Head), append(t.Right, !n.Columns[c].Left)
			for i := range n.Rows {
				t.Rows[i] = append(t.Rows[i], n.Rows[i][c].Text)
			}
		}
	}
	return t
}

// Class returns the class of a cell, or "".
func (t *table) Class(row, column int) string {
	switch {
	case t.Right[column]:
		return "figure"
	case column == 0 && t.Classes != nil:
		return t.Classes[row]
	}
	return ""
}
