package trace

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/advice"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// slowLayer is the factor over the median from which a layer is marked if there are enough layers, as in
// findings. similar is the largest factor that counts as equal.
const (
	slowLayer = 1.3
	manyLayer = 6
	similar   = 1.05
)

// layerParts returns the parts of a layer's time.
func layerParts() []string { return []string{"attention", "feed-forward", "norm", "other"} }

// allLayers returns the layers of each phase.
func (b *builder) allLayers() []page.Section {
	var phases []string
	for i := range b.s.Layers {
		if p := b.s.Layers[i].Phase; !slices.Contains(phases, p) {
			phases = append(phases, p)
		}
	}
	var out []page.Section
	for _, phase := range phases {
		out = append(out, Layers(b.s, phase)...)
	}
	return out
}

// Layers returns the time of the layers of a phase: a picture by part, and a table. It is empty if no
// operator of the phase belongs to a layer.
func Layers(s *optrace.Summary, phase string) []page.Section {
	b := &builder{s}
	rows, outside := b.layers(phase)
	if len(rows) == 0 {
		return nil
	}
	picture := page.Section{ID: "layers-" + phase, Title: layersOf(phase), Note: "time of each; half the height is the median of the line, the full height twice that or more"}
	picture.Add(b.layerSeries(rows, cmp.Or(phase, unknownPhase)))
	if said := layerWords(rows, outside); said != "" {
		picture.Add(page.Paragraph(page.Toned(page.Muted, said)))
	}
	table := page.Section{ID: "layer-table-" + phase, Title: layersOf(phase), Note: "means of a graph", Detail: true}
	if outside != nil {
		rows = append(rows, outside)
	}
	table.Add(b.layerTable(rows))
	return []page.Section{picture, table}
}

const unknownPhase = "unknown phase"

func layersOf(phase string) string { return "Layers of " + cmp.Or(phase, unknownPhase) }

// layers returns the layers of a phase in order, and the row outside of layers.
func (b *builder) layers(phase string) (rows []*optrace.LayerRow, outside *optrace.LayerRow) {
	for i := range b.s.Layers {
		switch l := &b.s.Layers[i]; {
		case l.Phase != phase:
		case l.Layer < 0:
			outside = l
		default:
			rows = append(rows, l)
		}
	}
	slices.SortStableFunc(rows, func(a, b *optrace.LayerRow) int { return cmp.Compare(a.Layer, b.Layer) })
	return rows, outside
}

// overMedian returns a function for a layer's time over the median of its phase.
func overMedian(rows []*optrace.LayerRow) func(*optrace.LayerRow) stat.Opt {
	median := medianOf(rows, func(l *optrace.LayerRow) time.Duration { return l.Time })
	return func(l *optrace.LayerRow) stat.Opt {
		if v := l.Slow.Finite(); v.OK {
			return v
		}
		return stat.Some(l.Time.Seconds()).Div(median)
	}
}

func medianOf(rows []*optrace.LayerRow, of func(*optrace.LayerRow) time.Duration) stat.Opt {
	times := make([]float64, len(rows))
	for i, l := range rows {
		times[i] = of(l).Seconds()
	}
	slices.Sort(times)
	return stat.NearestRank(times, .5)
}

// slowOnes returns the indexes of layers to mark.
func slowOnes(rows []*optrace.LayerRow) map[int]bool {
	out := map[int]bool{}
	for i, l := range rows {
		if v := l.Slow.Finite(); len(rows) >= manyLayer && l.Layer >= 0 && v.OK && v.V >= slowLayer {
			out[i] = true
		}
	}
	return out
}

// layerSeries returns a row for each part of the layers, each on its own scale.
func (b *builder) layerSeries(rows []*optrace.LayerRow, phase string) *page.Series {
	x := &page.Series{
		ID: "layers-" + phase, Noun: "layer",
		Desc: "Time of each layer of " + phase + ", a line for each of its parts: a shade of half the strength is the median of its line.",
	}
	marked := slowOnes(rows)
	for _, l := range rows {
		x.Ends = append(x.Ends, strconv.Itoa(l.Layer))
	}
	for i, part := range append([]string{"whole layer"}, layerParts()...) {
		of := func(l *optrace.LayerRow) time.Duration { return l.Parts[part] }
		over := func(l *optrace.LayerRow) stat.Opt { return stat.Some(of(l).Seconds()) }
		if i == 0 {
			of, over = func(l *optrace.LayerRow) time.Duration { return l.Time }, overMedian(rows)
		} else if median := medianOf(rows, of); median.V > 0 {
			over = func(l *optrace.LayerRow) stat.Opt { return stat.Some(of(l).Seconds()).Div(median) }
		}
		slowest := slices.MaxFunc(rows, func(a, b *optrace.LayerRow) int { return cmp.Compare(of(a), of(b)) })
		if of(slowest) <= 0 && i > 0 {
			continue
		}
		row := page.SeriesRow{
			Label: part, Highlighted: marked, Detail: i > 0, Note: fmt.Sprintf("longest %s in %d", page.Elapsed(b.meanPerGraph(slowest, of(slowest))).Text, slowest.Layer),
			Tooltip: func(i int) string {
				return fmt.Sprintf("layer %d, %s: %s", rows[i].Layer, part, figure.Duration(of(rows[i])))
			},
		}
		for _, l := range rows {
			row.Values = append(row.Values, over(l).Times(.5))
		}
		x.Rows = append(x.Rows, row)
	}
	return x
}

// meanPerGraph returns the mean of a layer's time over the graphs with it or, if that is unknown, over those of its
// phase.
func (b *builder) meanPerGraph(l *optrace.LayerRow, d time.Duration) time.Duration {
	if l.Graphs > 0 {
		return d / time.Duration(l.Graphs)
	}
	if p := b.phase(l.Phase); p != nil && p.Graph.Count > 0 {
		return d / time.Duration(p.Graph.Count)
	}
	return d
}

// layerWords describes how even the layers are, and the parts of their time.
func layerWords(rows []*optrace.LayerRow, outside *optrace.LayerRow) string {
	over := overMedian(rows)
	var said []string
	slowest := slices.MaxFunc(rows, func(a, b *optrace.LayerRow) int { return cmp.Compare(over(a).V, over(b).V) })
	switch v := over(slowest).Finite(); {
	case v.OK && v.V < similar:
		said = append(said, "all layers within "+figure.PercentSign(similar-1)+" of the median or below")
	case v.OK:
		said = append(said, "layer "+strconv.Itoa(slowest.Layer)+" is slowest, "+figure.Significant(v.V)+figure.NBSP+"× the median")
	}
	parts := map[string]time.Duration{}
	var all time.Duration
	for _, l := range rows {
		for name, d := range l.Parts {
			parts[name] += d
			all += d
		}
	}
	if outside != nil {
		if v := outside.Share.Finite(); v.OK {
			said = append(said, "outside layers "+figure.PercentSign(v.V))
		}
		for name, d := range outside.Parts {
			parts[name] += d
			all += d
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(parts), func(a, b string) int {
		return cmp.Or(cmp.Compare(parts[b], parts[a]), cmp.Compare(a, b))
	}) {
		if all > 0 && parts[name] > 0 {
			said = append(said, name+" "+figure.PercentSign(parts[name].Seconds()/all.Seconds()))
		}
	}
	return figure.Joined(" · ", said...)
}

// layerTable returns a table of layers with their parts.
func (b *builder) layerTable(rows []*optrace.LayerRow) *page.Table {
	type layer = *optrace.LayerRow
	fields := []page.Field[layer]{
		page.Left("layer", page.Strong, func(l layer) string {
			if l.Layer < 0 {
				return "none"
			}
			return strconv.Itoa(l.Layer)
		}),
		page.Right("a graph", page.Body, func(l layer) page.Cell { return page.Elapsed(b.meanPerGraph(l, l.Time)) }),
		page.Right("share", page.Body, func(l layer) page.Cell { return page.Share(l.Share) }),
		page.Right("of median", page.Body, func(l layer) page.Cell {
			v := l.Slow.Finite()
			if !v.OK || l.Layer < 0 {
				return page.Words("")
			}
			return page.Cell{Text: figure.Significant(v.V) + "×", Value: v}
		}).Ranked(1),
	}
	for i, part := range layerParts() {
		fields = append(fields, page.Right(part, page.Body, func(l layer) page.Cell { return page.Elapsed(b.meanPerGraph(l, l.Parts[part])) }).Ranked(i+2))
	}
	t := page.Tabulate(rows, fields)
	for i := range slowOnes(rows) {
		t.Rows[i][0].Text = page.Warn.Sign() + " " + t.Rows[i][0].Text + " slow"
		for j := range t.Rows[i] {
			t.Rows[i][j].Tone = page.Warn
		}
	}
	return t
}

// mostMixtures is the default number of mixtures to show.
const mostMixtures = 4

func (b *builder) experts() page.Section {
	e := b.s.Experts
	if e == nil {
		return page.Section{ID: "experts"}
	}
	out := page.Section{ID: "experts", Title: "Experts", Note: figure.Whole(float64(e.Used)) + " of " + figure.Whole(float64(e.Count)) + " for each token; shares are of tokens"}
	var facts page.Facts
	choices := figure.Counted(e.Tokens, "choice") + " read from " + figure.Counted(len(e.Layers), "layer") + ", one for each token and layer"
	if slices.ContainsFunc(e.Layers, func(l optrace.ExpertLayer) bool {
		return slices.ContainsFunc(l.Time, func(t stat.Opt) bool { return t.Finite().OK })
	}) {
		choices += "; times are means of the mixture's matrix products with one token"
	}
	facts.Add("choices", page.Body, choices)
	times := page.Ratio(e.TimeCV).Text
	if b.gap(advice.GapExpertTimes) != nil {
		times += " unknown without scheduling (see Not known)"
	}
	if e.Used > 1 && e.TimeCV.Finite().OK {
		times += fmt.Sprintf(", of products that compute %d experts each: an expert's own time varies more", e.Used)
	}
	facts.Add("imbalance", page.Body, "CV of the choices "+page.Ratio(e.CV).Text+" (0 is even) · CV of the time by expert "+times)
	out.Add(facts, expertSeries(e))
	return out
}

// expertSeries returns a row for each layer, scaled to its most frequent expert: the least even layer first,
// and a row for all layers together.
func expertSeries(e *optrace.Experts) *page.Series {
	x := &page.Series{
		ID: "experts", Title: "Experts by layer", Noun: "expert",
		Desc: fmt.Sprintf("How often each of %d experts was chosen, %d for each token; the strongest shade of a line is its most chosen expert.", e.Count, e.Used),
	}
	all := optrace.ExpertLayer{Layer: -1, CV: e.CV}
	order := slices.Clone(e.Layers)
	slices.SortStableFunc(order, func(a, b optrace.ExpertLayer) int { return cmp.Compare(b.CV.Finite().V, a.CV.Finite().V) })
	for i := range order {
		for j, n := range order[i].Chosen {
			if j == len(all.Chosen) {
				all.Chosen = append(all.Chosen, 0)
			}
			all.Chosen[j] += max(0, min(n, 1<<31))
		}
	}
	for i := range all.Chosen {
		x.Ends = append(x.Ends, strconv.Itoa(i))
	}
	if len(order) > 1 {
		all.Top = stat.Ratio(slices.Max(append([]int64{0}, all.Chosen...)), e.Tokens)
		order = slices.Insert(order, 0, all)
	}
	for i := range order {
		row := expertRow(&order[i])
		row.Detail = i > mostMixtures
		x.Rows = append(x.Rows, row)
	}
	return x
}

// expertRow returns the row of one layer's experts.
func expertRow(l *optrace.ExpertLayer) page.SeriesRow {
	label := "layer " + strconv.Itoa(l.Layer)
	if l.Layer < 0 {
		label = "all layers"
	}
	row := page.SeriesRow{Label: label, Note: expertWords(l), Tooltip: func(i int) string {
		return fmt.Sprintf("%s, expert %d: %s", label, i, figure.Whole(float64(l.Chosen[i])))
	}}
	most := int64(1)
	for _, n := range l.Chosen {
		most = max(most, n)
	}
	for _, n := range l.Chosen {
		v := stat.None // never chosen
		if n > 0 {
			v = stat.Some(float64(n) / float64(most))
		}
		row.Values = append(row.Values, v)
	}
	return row
}

// expertWords names the most and the least frequent experts of a mixture, and the range of its time by
// expert.
func expertWords(l *optrace.ExpertLayer) string {
	text := "CV " + page.Ratio(l.CV).Text
	most, least, never, slow, fast := 0, 0, 0, -1, -1
	var all int64
	for i, n := range l.Chosen {
		all += max(0, n)
		if n > l.Chosen[most] {
			most = i
		}
		if n < l.Chosen[least] {
			least = i
		}
		if n <= 0 {
			never++
		}
	}
	if all <= 0 {
		return text
	}
	// Top has the share of the tokens; the other shares follow from it.
	each := l.Top.Finite().Div(stat.Some(float64(l.Chosen[most])))
	share := func(i int) string { return figure.Show(each.Times(float64(max(0, l.Chosen[i]))), "ratio") }
	text += fmt.Sprintf("; most chosen: expert%s%d (%s, %s× an even share); least: %d (%s)", figure.NBSP, most, share(most), figure.Significant(float64(l.Chosen[most])*float64(len(l.Chosen))/float64(all)), least, share(least))
	if never > 0 {
		text += "; " + figure.Whole(float64(never)) + " never chosen"
	}
	for i, v := range l.Time {
		if !v.Finite().OK {
			continue
		}
		if slow < 0 || v.V > l.Time[slow].V {
			slow = i
		}
		if fast < 0 || v.V < l.Time[fast].V {
			fast = i
		}
	}
	if slow >= 0 && slow != fast {
		text += fmt.Sprintf("; time %s (expert %d) to %s (expert %d)", figure.Show(l.Time[fast], "s"), fast, figure.Show(l.Time[slow], "s"), slow)
	}
	return strings.TrimSpace(text)
}
