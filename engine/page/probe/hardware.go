package probe

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// processes returns the resource use of the process tree, by role and in total; a page with everything
// also has each process.
func (r *report) processes() page.Section {
	s := page.Section{ID: "processes", Title: "Processes"}
	t := r.s.Tree
	if t == nil {
		s.Add(page.Paragraph(r.absentText(cmp.Or(r.c.Tree.Why, "no process was sampled"))))
		return s
	}
	s.Note = "PID " + strconv.Itoa(r.c.Tree.Root)
	if r.c.Tree.How != "" {
		s.Note += " (" + r.c.Tree.How + ")"
	}
	s.Note += ", " + sampleCount(t)
	rows := slices.Clone(t.Roles)
	if r.everything {
		rows = append(rows, t.Processes...)
	}
	u := &t.Total
	total := *u
	total.Name, total.Count = "total", 0
	s.Add(r.usageTable(append(rows, total)))
	var f page.Facts
	if v := u.RunWaitSeconds.Finite(); v.OK {
		f.Add("waiting", page.Body, "threads waited "+figure.Show(v, "s")+" for a CPU")
	} else {
		f = append(f, page.Fact{Label: "waiting", Text: r.absentText("not reported for every process, or a thread ended meanwhile")})
	}
	f.Add("cgroup", page.Body, cgroup(t.Cgroup))
	s.Add(f)
	return s
}

func sampleCount(t *capture.TreeUsage) string {
	text := figure.Counted(t.Samples, "sample")
	if t.Failed > 0 {
		text += ", " + figure.Whole(float64(t.Failed)) + " failed"
	}
	if t.Partial > 0 {
		text += ", " + figure.Whole(float64(t.Partial)) + " partial (children were hidden)"
	}
	return text
}

// usageTable returns a table with a row for each role or process.
func (r *report) usageTable(rows []capture.ProcessUsage) *page.Table {
	type row = capture.ProcessUsage
	column := func(head string, rank int, unit string, of func(u *row) stat.Opt) page.Field[row] {
		return page.Right(head, page.Strong, func(u row) page.Cell { return page.Amount(of(&u), unit) }).Ranked(rank)
	}
	return page.Tabulate(rows, []page.Field[row]{
		page.Left("", page.Body, func(u row) string { return usageName(&u) }),
		column("RSS peak", 0, "B", func(u *row) stat.Opt { return u.RSS.Peak }),
		column("mean", 3, "B", func(u *row) stat.Opt { return u.RSS.Mean }),
		column("CPU mean", 0, "", func(u *row) stat.Opt { return u.CPU.Mean }),
		column("peak", 0, "", func(u *row) stat.Opt { return u.CPU.Peak }),
		column("CPU time", 2, "s", func(u *row) stat.Opt { return u.CPUSeconds }),
		column("threads", 0, "", func(u *row) stat.Opt { return u.Threads.Peak }),
		page.Notes("", func(u row) string {
			for _, x := range [...]capture.Row{u.RSS, u.CPU} {
				if !x.Mean.Finite().OK && !x.Peak.Finite().OK {
					return r.shortReason(x.Reason)
				}
			}
			return ""
		}).Ranked(4),
	})
}

// usageName returns a role with its number of processes, or a process with its PID.
func usageName(u *capture.ProcessUsage) string {
	name := cmp.Or(u.Name, "?")
	switch {
	case u.PID != 0:
		return nbsp + nbsp + name + nbsp + strconv.Itoa(u.PID)
	case u.Count > 1:
		return name + nbsp + "×" + nbsp + figure.Whole(float64(u.Count))
	}
	return name
}

// cgroup returns the CPU limit of the tree's control group, or "" without one.
func cgroup(g *capture.CgroupUsage) string {
	if g == nil {
		return ""
	}
	text := "no limit"
	if v := g.CPULimitCores.Finite(); v.OK {
		text = "limit " + figure.Show(v, "cores")
	}
	if v := g.ThrottledSeconds.Finite(); v.OK {
		text += " · throttled" + nbsp + figure.Show(v, "s")
		if share := g.ThrottledShare.Finite(); share.OK {
			text += " in " + figure.PercentSign(share.V) + " of periods"
		}
	}
	return text + " (" + g.Path + ")"
}

// maxTables is the largest number of GPUs with a table each; more share one table.
const maxTables = 2

// gpus returns the readings of each GPU, and the energy of all of them.
func (r *report) gpus() page.Section {
	s := page.Section{ID: "gpus", Title: "GPUs", Note: figure.Joined(", ", r.c.GPUs.From, r.c.GPUs.How)}
	switch {
	case r.summarizesGPUGaps():
		return page.Section{}
	case len(r.s.GPUs) == 0:
		s.Note = ""
		s.Add(page.Paragraph(r.absentText(cmp.Or(r.c.GPUs.Why, "no GPU was sampled"))))
		return s
	case len(r.s.GPUs) > maxTables && !r.everything:
		s.Add(gpuTable(r.s.GPUs))
	default:
		for i := range r.s.GPUs {
			s.Add(r.gpu(&r.s.GPUs[i])...)
		}
	}
	e := r.s.Energy
	text := r.absentText(e.Reason)
	if v := e.Joules.Finite(); v.OK {
		text = page.Toned(page.Body, figure.Joined(": ", figure.Show(v, "J")+" in total, by "+cmp.Or(e.How, "an unnamed method"), e.Reason))
	}
	s.Add(page.Facts{{Label: "energy", Text: text}})
	return s
}

// gpuTable returns a table with a row for each GPU.
func gpuTable(gpus []capture.GPUUsage) *page.Table {
	type row = capture.GPUUsage
	column := func(head, unit string, of func(g *row) stat.Opt) page.Field[row] {
		return page.Right(head, page.Strong, func(g row) page.Cell { return page.Amount(of(&g), unit) })
	}
	return page.Tabulate(gpus, []page.Field[row]{
		page.Left("", page.Body, func(g row) string { return strconv.Itoa(g.Index) + nbsp + figure.Unbroken(g.Name) }),
		column("busy mean", "ratio", func(g *row) stat.Opt { return g.Fields[engine.GPUUtil].Mean }),
		column("peak", "ratio", func(g *row) stat.Opt { return g.Fields[engine.GPUUtil].Peak }),
		column("power mean", "W", func(g *row) stat.Opt { return g.Fields[engine.GPUPowerW].Mean }),
		column("peak", "W", func(g *row) stat.Opt { return g.Fields[engine.GPUPowerW].Peak }),
		column("VRAM peak", "B", func(g *row) stat.Opt { return g.Fields[engine.GPUVRAMUsed].Peak }),
		column("energy", "J", func(g *row) stat.Opt { return g.Energy.Joules }),
	})
}

// shownAbsent are the fields whose absence is shown on a short page.
var shownAbsent = []engine.GPUField{engine.GPUUtil, engine.GPUPowerW, engine.GPUVRAMUsed, engine.GPUTemperatureC}

// gpu returns the table of one GPU.
func (r *report) gpu(g *capture.GPUUsage) []page.Node {
	nodes := []page.Node{page.Paragraph(page.Toned(page.Strong, "GPU "+strconv.Itoa(g.Index)+" "+g.Name))}
	var rows []engine.GPUField
	var unread []string
	for _, f := range engine.GPUFields() {
		row := g.Fields[f]
		read := row.Mean.Finite().OK || row.Peak.Finite().OK
		switch {
		case read && !r.everything && (f == engine.GPUPowerLimitW || f == engine.GPUVRAMTotal): // shown with the quantity that they limit
		case read, row.Reason != "" && row.Reason != capture.NotRead && (r.everything || slices.Contains(shownAbsent, f)):
			rows = append(rows, f)
		default:
			unread = append(unread, f.Name())
		}
	}
	if len(rows) > 0 {
		value := func(head string, of func(row *capture.Row) stat.Opt) page.Field[engine.GPUField] {
			return page.Right(head, page.Strong, func(f engine.GPUField) page.Cell { return page.Amount(of(&g.Fields[f]), f.Unit()) })
		}
		nodes = append(nodes, page.Tabulate(rows, []page.Field[engine.GPUField]{
			page.Left("", page.Body, func(f engine.GPUField) string { return nbsp + nbsp + f.Name() }),
			value("mean", func(row *capture.Row) stat.Opt { return row.Mean }),
			value("peak", func(row *capture.Row) stat.Opt { return row.Peak }),
			page.Right("readings", page.Muted, func(f engine.GPUField) page.Cell { return page.Integer(g.Fields[f].Samples) }),
			page.Notes("", func(f engine.GPUField) string { return r.gpuNote(g, f) }),
		}))
	}
	if len(unread) > 0 && (r.everything || len(rows) == 0) {
		nodes = append(nodes, page.Inset(page.Toned(page.Muted, figure.Absent+" "+capture.NotRead+": "+strings.Join(unread, ", "))))
	}
	if names := catalog.ThrottleKeys(g.Throttle); g.ThrottleOK && len(names) > 0 {
		nodes = append(nodes, page.Inset(page.Toned(page.Muted, "clock events seen: "+strings.Join(names, ", "))))
	}
	return nodes
}

// gpuNote returns why a field is absent, or the caveat of its measurement.
func (r *report) gpuNote(g *capture.GPUUsage, f engine.GPUField) string {
	limit := func(word string, of engine.GPUField, unit string) string {
		if o := g.Fields[of].Peak.Finite(); o.OK {
			return word + figure.Show(o, unit)
		}
		return ""
	}
	reason := r.shortReason(g.Fields[f].Reason)
	switch f {
	case engine.GPUPowerW:
		return cmp.Or(reason, limit("limit ", engine.GPUPowerLimitW, "W"))
	case engine.GPUVRAMUsed:
		return cmp.Or(reason, limit("of ", engine.GPUVRAMTotal, "B"))
	}
	return reason
}

// sizing returns whether smaller hardware would suffice.
func (r *report) sizing() page.Section {
	x := &r.s.Sizing
	if x.Text == "" && x.Reason == "" && x.Verdict == "" || r.summarizesGPUGaps() && !r.sized() {
		return page.Section{}
	}
	s := page.Section{ID: "sizing", Title: "Sizing", Note: x.Verdict}
	if x.Text != "" {
		s.Add(page.Paragraph(page.Toned(page.Body, x.Text)))
	}
	if len(x.Smaller) == 0 {
		s.Add(page.Paragraph(r.absentText(cmp.Or(x.Reason, "no smaller card in the catalog is known to serve this"))))
		return s
	}
	column := func(head string, of func(c *capture.Card) string) page.Field[capture.Card] {
		return page.Right(head, page.Strong, func(c capture.Card) page.Cell { return page.Words(of(&c)) })
	}
	s.Add(page.Tabulate(x.Smaller, []page.Field[capture.Card]{
		page.Left("", page.Body, func(c capture.Card) string {
			if c.GPUs > 1 {
				return figure.Whole(float64(c.GPUs)) + nbsp + "×" + nbsp + c.Name
			}
			return c.Name
		}),
		column("$/h", func(c *capture.Card) string { return dollars(c.DollarsPerH) }),
		column("memory needed", func(c *capture.Card) string {
			return figure.Value(c.NeedBytes, "B") + nbsp + "of" + nbsp + figure.Value(c.VRAMBytes, "B")
		}),
		column("tok/s (est)", cardRate),
		column("$/1M tok", func(c *capture.Card) string { return dollars(c.DollarsPerMTk) }),
	}))
	if date := x.Smaller[0].PriceDate; date != "" {
		s.Add(page.Paragraph(page.Toned(page.Muted, "prices of "+date)))
	}
	return s
}

func cardRate(c *capture.Card) string {
	v, low, high := c.TokensPerS.Finite(), c.Low.Finite(), c.High.Finite()
	switch {
	case !v.OK:
		return ""
	case !low.OK || !high.OK:
		return figure.Significant(v.V)
	}
	return figure.Significant(v.V) + nbsp + "(" + figure.Significant(low.V) + nbsp + "to" + nbsp + figure.Significant(high.V) + ")"
}

func dollars(o stat.Opt) string {
	if !o.Finite().OK {
		return ""
	}
	return figure.Dollars(o.V)
}
