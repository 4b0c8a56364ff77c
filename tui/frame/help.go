package frame

import (
	"charm.land/bubbles/v2/key"

	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Guide is the content of the help.
type Guide struct {
	Groups []KeyGroup
	Off    [][2]string // keys that do nothing now, each with the reason
	Legend []Remark    // what the symbols mean
}

// sections returns every key, the keys without effect now and why, and the meaning of the symbols.
func (g *Guide) sections() []page.Section {
	var list []page.Section
	for _, group := range g.Groups {
		list = append(list, page.Section{Title: group.Title, Beside: true, Nodes: []page.Node{page.Tabulate(group.Keys, []page.Field[key.Binding]{
			page.Left("", cell.Key, func(b key.Binding) string { return b.Help().Key }),
			page.Left("", page.Body, func(b key.Binding) string { return b.Help().Desc }),
		})}})
	}
	list = append(list, page.Section{Title: "Not now", Nodes: []page.Node{page.Tabulate(g.Off, []page.Field[[2]string]{
		page.Left("", cell.Disabled, func(k [2]string) string { return k[0] }),
		page.Left("", cell.Disabled, func(k [2]string) string { return k[1] }),
	})}})
	signs := page.Section{Title: "Signs"}
	for _, m := range g.Legend {
		signs.Add(page.Paragraph(page.Toned(m.Token, m.Text)))
	}
	return append(list, signs)
}
