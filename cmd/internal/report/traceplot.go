package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Rows of operators in a picture, their height, and where their bars begin.
const (
	mostPlotted = 14
	plotRow     = 22.0
	plotNames   = 190.0
)

// mainPhase is the phase with most time, decode where there is one.
func mainPhase(s *optrace.Summary) string {
	phases := phasesByTime(s)
	switch {
	case slices.Contains(phases, "decode"):
		return "decode"
	case len(phases) > 0:
		return phases[0]
	}
	return ""
}

// plotted are the rows of the main phase that pictures show.
func plotted(s *optrace.Summary) (string, []*optrace.OperatorRow) {
	phase := mainPhase(s)
	rows := of(s.Steps, phase)
	if len(rows) == 0 {
		rows = of(s.Kinds, phase)
	}
	return phase, rows[:min(len(rows), mostPlotted)]
}

// boundClass is the shade of a bound.
func boundClass(b optrace.Bound) string {
	switch b {
	case optrace.BoundMemory, optrace.BoundCompute, optrace.BoundMixed, optrace.BoundWaiting:
		return string(b)
	}
	return "other"
}

func boundKeys() []keyOf {
	return []keyOf{{Class: "memory", Label: "bound by memory"}, {Class: "compute", Label: "bound by compute"}, {Class: "mixed", Label: "by both"}, {Class: "waiting", Label: "waits for others or for a CPU"}, {Class: "other", Label: "by neither, or not known"}}
}

// sharePlate is the share of each operator as a bar, shaded by what bounds it.
func sharePlate(s *optrace.Summary) *plate {
	phase, rows := plotted(s)
	p := newPlate("share", "Share of time by operator", float64(len(rows))*plotRow+16)
	most := stat.None
	name := distinct(rows)
	for _, o := range rows {
		most = most.Max(finite(o.Share))
	}
	if most.V <= 0 {
		p.Empty = "no operator was seen"
		return p
	}
	const gap, wideCell = 6.0, 7.2 // of the font, wide characters
	behind := func(o *optrace.OperatorRow) string {
		return percent(finite(o.Share)) + " · " + clipped(safe(cmp.Or(o.Type, strings.ToLower(o.Op))), 20)
	}
	room := 0.0
	for _, o := range rows {
		room = max(room, gap+wideCell*float64(width(behind(o))))
	}
	var said []string
	for i, o := range rows {
		y := float64(i)*plotRow + 6
		share := finite(o.Share)
		p.label("strong", plotNames-8, y+14, "end", clipped(safe(name(o)), 26))
		text := fmt.Sprintf("%s, %s: %s, %s", stepName(o), kindName(o), percent(share), shownBound(o))
		length := (frameWidth - plotNames - room) * max(0, share.V) / most.V
		p.rect(boundClass(o.Bound), plotNames, y+2, max(1, length), plotRow-6, text)
		p.label("", plotNames+length+gap, y+14, "start", behind(o))
		if i < 3 {
			said = append(said, stepName(o)+" "+percent(share))
		}
	}
	p.Keys = boundKeys()
	p.Desc = plainText("Share of the time of the operators of " + phase + "; the largest are " + strings.Join(said, ", ") + ". Bounds by roofline are estimates.")
	return p
}

// spreadPlate is how the time of each operator is spread: from the median to the 95th
// percentile a bar, a line to the longest.
func spreadPlate(s *optrace.Summary) *plate {
	phase, rows := plotted(s)
	rows = slices.DeleteFunc(slices.Clone(rows), func(o *optrace.OperatorRow) bool {
		return o.Each.Count <= 0 || o.Each.P50 <= 0 || o.Each.Max < o.Each.P50
	})
	p := newPlate("spread", "Time of one operator", float64(len(rows))*plotRow+46)
	if len(rows) == 0 {
		p.Empty = "no times of operators are known"
		return p
	}
	least, most := math.Inf(1), 0.0
	name := distinct(rows)
	for _, o := range rows {
		least, most = min(least, o.Each.P50.Seconds()), max(most, o.Each.Max.Seconds())
	}
	lo, hi, ticks := decades(least, most)
	x := scaleOf{lo, hi, plotNames, frameWidth - frameRight - 30, true}
	bottom := float64(len(rows))*plotRow + 8
	for _, v := range ticks {
		p.line("grid", x.at(v), 4, x.at(v), bottom)
		p.label("", x.at(v), bottom+16, "middle", inUnit("s")(v))
	}
	for i, o := range rows {
		y := float64(i)*plotRow + 6
		e := &o.Each
		at := func(d time.Duration) float64 { return x.at(min(max(d.Seconds(), lo), hi)) }
		p.label("strong", plotNames-8, y+14, "end", clipped(safe(name(o)), 26))
		p.line("whisker", at(e.P50), y+plotRow/2-1, at(e.Max), y+plotRow/2-1)
		text := fmt.Sprintf("%s: p50 %s, p95 %s, p99 %s, longest %s, %d of them", stepName(o), shownTime(e.P50), shownTime(e.P95), shownTime(e.P99), shownTime(e.Max), e.Count)
		p.rect(boundClass(o.Bound), at(e.P50), y+4, max(2, at(e.P95)-at(e.P50)), plotRow-10, text)
		p.dot("other", at(e.Mean), y+plotRow/2-1, 3, text)
	}
	p.Keys = boundKeys()
	p.Desc = plainText("Times of single operators of " + phase + ", logarithmic: the bar reaches from the median to the 95th percentile, the line to the longest, the dot is the mean. Quantiles are nearest rank.")
	return p
}

// roofPlate is the roofline: the rate of operations of each group of operators against
// its operations for each byte, under the roofs of memory and of compute.
func roofPlate(s *optrace.Summary) *plate {
	p := newPlate("roofline", "Roofline", frameHeight)
	type spot struct {
		o    *optrace.OperatorRow
		x, y float64
	}
	var spots []spot
	var xs, ys, rates []float64
	for i := range s.Steps {
		o := &s.Steps[i]
		bytes, flops, rate := finite(o.Bytes), finite(o.Flops), finite(o.FlopsRate)
		if !finiteAbove(bytes.V) || !finiteAbove(flops.V) || !finiteAbove(rate.V) || !finiteAbove(flops.V/bytes.V) {
			continue
		}
		spots = append(spots, spot{o, flops.V / bytes.V, rate.V / 1e9})
		xs, ys = append(xs, flops.V/bytes.V), append(ys, rate.V/1e9)
		if o.Type != "" {
			rates = append(rates, rate.V/1e9)
		}
	}
	if len(spots) == 0 {
		p.Empty = "no operator has both bytes and operations that are known"
		return p
	}
	memory := finite(stat.Some(s.Roof.BytesPerSecond)).V / 1e9
	computing, _ := s.Roof.Computing(weightsOf(s.Kinds, mainPhase(s)), 1e9*slices.Max(append(rates, 0)))
	ceiling := finite(stat.Some(computing)).V / 1e9
	if finiteAbove(ceiling) {
		ys = append(ys, ceiling)
		if finiteAbove(memory) {
			xs = append(xs, ceiling/memory)
		}
	}
	xlo, xhi, xticks := decades(slices.Min(xs)/1.5, slices.Max(xs)*1.5)
	ylo, yhi, yticks := decades(slices.Min(ys)/1.5, slices.Max(ys)*1.2)
	x, y := xScale(xlo, xhi, true), yScale(ylo, yhi, true)
	p.axes(x, y, xticks, yticks, roundNumber, roundNumber, "operations for each byte", "GFLOP/s")
	p.roofs(x, y, memory, ceiling)
	slices.SortStableFunc(spots, func(a, b spot) int { return cmp.Compare(finite(b.o.Share).V, finite(a.o.Share).V) })
	var labelled [][2]float64
	for _, at := range spots {
		class := "other"
		switch at.o.Phase {
		case "decode":
			class = "memory"
		case "prefill":
			class = "compute"
		}
		px, py := x.at(at.x), y.at(at.y)
		share := min(1, max(0, finite(at.o.Share).V))
		p.dot(class, px, py, 3+14*math.Sqrt(share), fmt.Sprintf("%s, %s: %s GFLOP/s at %s a byte, %s of the phase", stepName(at.o), at.o.Phase, figure.Significant(at.y), figure.Significant(at.x), percent(at.o.Share)))
		near := slices.ContainsFunc(labelled, func(q [2]float64) bool { return math.Abs(q[0]-px) < 90 && math.Abs(q[1]-py) < 15 })
		const mostLabelled = 10
		if !near && len(labelled) < mostLabelled {
			labelled = append(labelled, [2]float64{px, py})
			anchor, lx := "start", px+8
			if px > frameWidth-160 {
				anchor, lx = "end", px-8
			}
			p.label("halo", lx, py-6, anchor, clipped(safe(stepName(at.o)), 20))
		}
	}
	p.Keys = []keyOf{{Class: "memory", Label: "decode"}, {Class: "compute", Label: "prefill"}, {Class: "other", Label: "other phases"}}
	p.Desc = "Each dot is a group of operators, the larger the more of its phase's time it takes; both axes are logarithmic, bytes and operations are reckoned from shapes (est)."
	if memory > 0 {
		p.Desc += " Dashed: " + figure.Significant(memory) + " GB/s of memory"
		if ceiling > 0 {
			p.Desc += " and " + figure.Significant(ceiling) + " GFLOP/s of compute"
		}
		origin := cmp.Or(s.Roof.Origin(), "origin unknown")
		if s.Roof.From == optrace.RoofSeen {
			origin = s.SeenRoof()
		}
		p.Desc += " (" + plainText(origin) + ")."
	}
	return p
}

// roundNumber labels a tick, which is a round number however small.
func roundNumber(v float64) string {
	if v >= 1 {
		return figure.Count(v)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// roofs draws the slope of memory and the line of compute, as far as they are known and
// in the frame.
func (p *plate) roofs(x, y scaleOf, memory, ceiling float64) {
	if finiteAbove(memory) {
		from, to := max(x.lo, y.lo/memory), min(x.hi, y.hi/memory)
		if finiteAbove(ceiling) {
			to = min(to, ceiling/memory)
		}
		if from < to {
			p.path("curve roof memory", [][2]float64{{x.at(from), y.at(from * memory)}, {x.at(to), y.at(to * memory)}})
		}
	}
	if finiteAbove(ceiling) && y.inside(ceiling) {
		from := x.lo
		if finiteAbove(memory) {
			from = min(max(x.lo, ceiling/memory), x.hi)
		}
		p.path("curve roof compute", [][2]float64{{x.at(from), y.at(ceiling)}, {x.at(x.hi), y.at(ceiling)}})
	}
}

// heatClass is the shade of a share of the largest.
func heatClass(share float64) string {
	if !(share > 0) {
		return "heat h0"
	}
	return fmt.Sprintf("heat h%d", min(9, int(share*10)))
}

// mostHeatRows bounds the phases of a heat map.
const mostHeatRows = 12

// layerPlate is the time of each layer, a row for each part of it.
func layerPlate(s *optrace.Summary) *plate {
	type heatRow struct {
		label string
		of    func(*optrace.LayerRow) time.Duration
		rows  []*optrace.LayerRow
	}
	var rows []heatRow
	var phases []string
	for i := range s.Layers {
		if !slices.Contains(phases, s.Layers[i].Phase) {
			phases = append(phases, s.Layers[i].Phase)
		}
	}
	columns := 0
	for _, phase := range phases {
		list := slices.DeleteFunc(layersOf(s.Layers, phase), func(l *optrace.LayerRow) bool { return l.Layer < 0 })
		columns = max(columns, len(list))
		parts := map[string]time.Duration{}
		for _, l := range list {
			for name, d := range l.Parts {
				parts[name] += d
			}
		}
		rows = append(rows, heatRow{phase + ", whole layer", func(l *optrace.LayerRow) time.Duration { return l.Time }, list})
		for _, name := range slices.Sorted(maps.Keys(parts)) {
			if parts[name] > 0 {
				rows = append(rows, heatRow{phase + ", " + name, func(l *optrace.LayerRow) time.Duration { return l.Parts[name] }, list})
			}
		}
	}
	rows = rows[:min(len(rows), mostHeatRows)]
	p := newPlate("layers", "Layers", float64(len(rows))*plotRow+40)
	if columns == 0 {
		p.Empty = "no operator belongs to a layer"
		return p
	}
	cell := (frameWidth - plotNames - frameRight) / float64(columns)
	for i, row := range rows {
		y := float64(i)*plotRow + 4
		p.label("strong", plotNames-8, y+15, "end", clipped(safe(row.label), 28))
		var most time.Duration
		for _, l := range row.rows {
			most = max(most, row.of(l))
		}
		for j, l := range row.rows {
			share := 0.0
			if most > 0 {
				share = row.of(l).Seconds() / most.Seconds()
			}
			p.rect(heatClass(share), plotNames+float64(j)*cell, y, cell-1, plotRow-3, fmt.Sprintf("layer %d, %s: %s", l.Layer, row.label, shownTime(row.of(l))))
		}
	}
	first := rows[0].rows
	step := max(1, len(first)/12)
	for j := 0; j < len(first); j += step {
		p.label("", plotNames+(float64(j)+.5)*cell, float64(len(rows))*plotRow+20, "middle", figure.Whole(float64(first[j].Layer)))
	}
	p.Desc = "Time of each layer, a row for each of its parts; the strongest shade of a row is its longest layer. Numbers are layers."
	return p
}
