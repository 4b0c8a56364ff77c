package frame

import (
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
)

// Matching returns the parts of sections that contain the filter, below a line with their number.
func (u *Settings) Matching(list []page.Section) []page.Section {
	filter := strings.TrimSpace(u.Filter)
	if filter == "" {
		return list
	}
	all, matched := 0, 0
	has := func(parts ...string) bool {
		all++
		text := strings.ReplaceAll(strings.Join(parts, " "), figure.NBSP, " ")
		found := strings.Contains(strings.ToLower(text), strings.ToLower(filter))
		if found {
			matched++
		}
		return found
	}
	out := []page.Section{{}}
	for _, s := range list {
		kept := page.Section{ID: s.ID, Title: s.Title, Note: s.Note}
		for _, n := range s.Nodes {
			switch n := n.(type) {
			case page.Findings:
				kept.Add(slices.DeleteFunc(slices.Clone(n), func(f page.Finding) bool {
					return !has(f.Word, f.Title.String(), strings.Join(f.Evidence, " "))
				}))
			case page.Facts:
				kept.Add(slices.DeleteFunc(slices.Clone(n), func(f page.Fact) bool { return !has(f.Label, f.Text.String()) }))
			case page.Prose:
				if has(n.Text.String()) {
					kept.Add(n)
				}
			case *page.Table:
				t := *n
				t.Rows = slices.DeleteFunc(slices.Clone(n.Rows), func(row []page.Cell) bool {
					var texts []string
					for _, c := range row {
						texts = append(texts, c.Text)
					}
					return !has(texts...)
				})
				kept.Add(&t)
			}
		}
		out = append(out, kept)
	}
	out[0].Add(page.Prose{Text: Matches(matched, all, "entry", filter)})
	return out
}
