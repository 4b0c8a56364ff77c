package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// processes says what the tree used, by role and in all; each process with -v.
func (r *probePage) processes() {
	t := r.s.Tree
	if t == nil {
		r.heading("Processes", "")
		r.line(indent, r.gap(cmp.Or(r.c.Tree.Why, "no process was sampled")))
		return
	}
	aside := "PID " + figurePID(r.c.Tree.Root)
	if r.c.Tree.How != "" {
		aside += " (" + r.c.Tree.How + ")"
	}
	r.heading("Processes", aside+", "+r.looks(t))
	rows := t.Roles
	if r.o.Verbose {
		rows = append(append([]capture.ProcessUsage{}, t.Roles...), t.Processes...)
	}
	r.table(indent, r.usageTable(&t.Total, rows))
	u := &t.Total
	r.counts("switches", r.runWait(u), func(s *capture.ProcessSample) stat.Opt { return s.VoluntarySwitches },
		count{u.VoluntarySwitches, "", "voluntary"}, count{u.InvoluntarySwitches, "", "involuntary"})
	r.counts("faults", "", func(s *capture.ProcessSample) stat.Opt { return s.MinorFaults },
		count{u.MinorFaults, "", "minor"}, count{u.MajorFaults, "", "major"})
	r.counts("storage", "", func(s *capture.ProcessSample) stat.Opt { return s.ReadBytes },
		count{u.ReadBytes, "B", "read"}, count{u.WrittenBytes, "B", "written"})
	r.cgroup(t)
}

// count is a number of things over the run.
type count struct {
	value      stat.Opt
	unit, what string
}

// counts writes several counts, or why there is none; of is the counter of one look.
func (r *probePage) counts(label, more string, of func(*capture.ProcessSample) stat.Opt, list ...count) {
	var parts []string
	any := false
	for _, c := range list {
		v := finite(c.value)
		any = any || v.OK
		parts = append(parts, figure.Show(v, c.unit)+nbsp+c.what)
	}
	if !any {
		r.entry(label, r.gap(r.uncounted(of)))
		return
	}
	r.entry(label, r.text(body, strings.Join(parts, ", ")+more))
}

// uncounted says why a counter did not grow between two looks: what only the opening
// and the closing look read is lost with a tree that ended before.
func (r *probePage) uncounted(of func(*capture.ProcessSample) stat.Opt) string {
	looks := r.c.Tree.Samples
	if len(looks) == 0 || looks[len(looks)-1].Error == "" {
		return "not read of any process"
	}
	for i := range looks {
		if slices.ContainsFunc(looks[i].Processes, func(s capture.ProcessSample) bool { return of(&s).OK }) {
			return "read at the start alone, since the last look at the processes failed"
		}
	}
	return "not read of any process"
}

// figurePID spells a PID without separators.
func figurePID(pid int) string { return strings.ReplaceAll(figure.Whole(float64(pid)), ",", "") }

func (r *probePage) looks(t *capture.TreeUsage) string {
	said := plural(t.Samples, "sample")
	if t.Failed > 0 {
		said += ", " + figure.Whole(float64(t.Failed)) + " failed"
	}
	if t.Partial > 0 {
		said += ", " + figure.Whole(float64(t.Partial)) + " partial (children were hidden)"
	}
	return said
}

func (r *probePage) runWait(u *capture.ProcessUsage) string {
	if v := finite(u.RunWaitSeconds); v.OK {
		return "; threads waited " + figure.Show(v, "s") + " for a CPU"
	}
	return ""
}

// usageTable has a line for each row. Columns that matter least are left out where all
// of them do not fit.
func (r *probePage) usageTable(total *capture.ProcessUsage, rows []capture.ProcessUsage) *table {
	var t *table
	for _, without := range [...][]int{nil, {2}, {2, 6}, {2, 3, 6}} {
		for _, gap := range [...]int{2, 1} {
			t = &table{gap: gap}
			t.add(dropped(append(r.columnHeads("RSS peak", "mean", "PSS", "CPU mean", "peak", "CPU time", "threads"), cell{}), without)...)
			for i := range rows {
				t.add(dropped(r.usage(rowName(&rows[i]), &rows[i]), without)...)
			}
			t.add(dropped(r.usage("total", total), without)...)
			if t.natural() <= r.width-indent {
				return t
			}
		}
	}
	return t
}

// dropped is a row without some of its columns.
func dropped(row []cell, without []int) []cell {
	var out []cell
	for i, c := range row {
		if !slices.Contains(without, i) {
			out = append(out, c)
		}
	}
	return out
}

// rowName is a role with how many processes it has, or a process with its PID.
func rowName(u *capture.ProcessUsage) string {
	switch {
	case u.PID != 0:
		return nbsp + nbsp + cmp.Or(u.Name, "?") + nbsp + figurePID(u.PID)
	case u.Count > 1:
		return cmp.Or(u.Name, "?") + nbsp + "×" + nbsp + figure.Whole(float64(u.Count))
	}
	return cmp.Or(u.Name, "?")
}

func (r *probePage) usage(name string, u *capture.ProcessUsage) []cell {
	show := func(o stat.Opt, unit string) cell {
		return cell{t: r.text(strong, figure.Show(finite(o), unit)), right: true}
	}
	reason := ""
	for _, row := range [...]capture.Row{u.RSS, u.CPU} {
		if !finite(row.Mean).OK && !finite(row.Peak).OK {
			reason = cmp.Or(reason, row.Reason)
		}
	}
	return []cell{
		{t: r.text(body, name)}, show(u.RSS.Peak, "B"), show(u.RSS.Mean, "B"), show(u.PSS.Peak.Max(u.PSS.Mean), "B"),
		show(u.CPU.Mean, ""), show(u.CPU.Peak, ""), show(u.CPUSeconds, "s"), show(u.Threads.Peak, ""), {t: r.text(muted, r.short(reason))},
	}
}

// agreeWithin is how far the sums of the tree and of its control group may lie apart
// and still be said to agree.
const agreeWithin = 0.02

func (r *probePage) cgroup(t *capture.TreeUsage) {
	g := t.Cgroup
	if g == nil {
		return
	}
	var parts []string
	if v := finite(g.CPUSeconds); v.OK {
		parts = append(parts, "CPU"+nbsp+figure.Show(v, "s")+r.agrees(g, t))
	}
	parts = append(parts, "limit "+limit(g.CPULimitCores, "cores"))
	if v := finite(g.ThrottledSeconds); v.OK {
		s := "throttled" + nbsp + figure.Show(v, "s")
		if share := finite(g.ThrottledShare); share.OK {
			s += " in " + figure.Percent(share.V) + nbsp + "% of periods"
		}
		parts = append(parts, s)
	}
	if v := finite(g.MemoryBytes); v.OK {
		parts = append(parts, "memory"+nbsp+figure.Show(v, "B")+", limit "+limit(g.MemoryLimitMax, "B"))
	}
	r.entry("cgroup", r.text(body, strings.Join(parts, " · ")+" ("+g.Path+")"))
}

func limit(o stat.Opt, unit string) string {
	if !finite(o).OK {
		return "none"
	}
	return figure.Show(finite(o), unit)
}

// agrees says whether the control group used what its processes did.
func (r *probePage) agrees(g *capture.CgroupUsage, t *capture.TreeUsage) string {
	sum, own := finite(t.Total.CPUSeconds), finite(g.CPUSeconds)
	switch {
	case !g.Whole:
		return ", with processes outside of the tree"
	case !sum.OK || own.V <= 0:
		return ""
	}
	off := sum.V/own.V - 1
	if off >= -agreeWithin && off <= agreeWithin {
		return ", the tree agrees"
	}
	return ", the tree's sum is " + figure.Change(off) + nbsp + "% off"
}

// gpus says what each GPU did, and what energy all of them took.
func (r *probePage) gpus() {
	if r.folded() {
		return
	}
	if len(r.s.GPUs) == 0 {
		r.heading("GPUs", "")
		r.line(indent, r.gap(cmp.Or(r.c.GPUs.Why, "no GPU was sampled")))
		return
	}
	r.heading("GPUs", strings.Join(nonEmpty(r.c.GPUs.From, r.c.GPUs.How), ", "))
	if len(r.s.GPUs) > severalGPUs && !r.o.Verbose {
		r.fitted(r.gpuTable())
	} else {
		for i := range r.s.GPUs {
			r.gpu(&r.s.GPUs[i])
		}
	}
	e := r.s.Energy
	if v := finite(e.Joules); v.OK {
		said := figure.Show(v, "J") + " in all, by " + cmp.Or(e.How, "an unnamed method")
		if e.Reason != "" {
			said += ": " + e.Reason
		}
		r.entry("energy", r.text(body, said))
	} else {
		r.entry("energy", r.gap(e.Reason))
	}
}

// severalGPUs are as many as have a table each; more of them share one.
const severalGPUs = 2

// gpuTable has a line for each GPU.
func (r *probePage) gpuTable() *table {
	t := &table{}
	t.add(append(r.columnHeads("busy mean", "peak", "power mean", "peak", "VRAM peak", "energy"), cell{})...)
	for i := range r.s.GPUs {
		g := &r.s.GPUs[i]
		value := func(o stat.Opt, unit string) cell {
			return cell{t: r.text(strong, figure.Show(finite(o), unit)), right: true}
		}
		util, power := g.Fields[engine.GPUUtil], g.Fields[engine.GPUPowerW]
		t.add(cell{t: r.text(body, figure.Whole(float64(g.Index))+nbsp+strings.ReplaceAll(g.Name, " ", nbsp))},
			value(util.Mean, "ratio"), value(util.Peak, "ratio"), value(power.Mean, "W"), value(power.Peak, "W"),
			value(g.Fields[engine.GPUVRAMUsed].Peak, "B"), value(g.Energy.Joules, "J"), cell{})
	}
	return t
}

func (r *probePage) gpu(g *capture.GPUUsage) {
	r.para(indent, indent+2, r.text(strong, "GPU "+figure.Whole(float64(g.Index))+" "+g.Name))
	t := &table{}
	t.add(append(r.columnHeads("mean", "peak", "readings"), cell{})...)
	var unreadFields []string
	for _, f := range readings() {
		row := g.Fields[f.field]
		known := finite(row.Mean).OK || finite(row.Peak).OK
		switch {
		case known && !r.o.Verbose && (f.field == engine.GPUPowerLimitW || f.field == engine.GPUVRAMTotal): // beside what is limited
		case known, row.Reason != "" && row.Reason != unread && (r.o.Verbose || shownGPUField(f.field)):
			t.add(r.gpuRow(g, f, row)...)
		default:
			unreadFields = append(unreadFields, fieldName(f))
		}
	}
	if len(t.rows) > 1 {
		r.table(indent, t)
	}
	if len(unreadFields) > 0 && (r.o.Verbose || len(t.rows) == 1) {
		r.para(indent+2, indent+4, r.text(muted, absent+" "+unread+": "+strings.Join(unreadFields, ", ")))
	}
	if names := throttleReasons(g.Throttle); g.ThrottleOK && len(names) > 0 {
		r.para(indent+2, indent+4, r.text(muted, "clock events seen: "+strings.Join(names, ", ")))
	}
}

// fieldName is the name of a reading without its unit.
func fieldName(f reading) string {
	name := f.name
	for _, unit := range [...]string{"_bytes_per_s", "_bytes", "_mhz", "_w", "_c", "_j"} {
		name = strings.TrimSuffix(name, unit)
	}
	return strings.ReplaceAll(name, "_", " ")
}

func (r *probePage) gpuRow(g *capture.GPUUsage, f reading, row capture.Row) []cell {
	value := func(o stat.Opt) cell {
		return cell{t: r.text(strong, figure.Show(finite(o), f.unit)), right: true}
	}
	aside := r.short(row.Reason)
	switch f.field {
	case engine.GPUPowerW:
		aside = cmp.Or(aside, limitOf("limit ", g.Fields[engine.GPUPowerLimitW].Peak, "W"))
	case engine.GPUVRAMUsed:
		aside = cmp.Or(aside, limitOf("of ", g.Fields[engine.GPUVRAMTotal].Peak, "B"))
	}
	return []cell{
		{t: r.text(body, nbsp+nbsp+fieldName(f))}, value(row.Mean), value(row.Peak),
		{t: r.text(muted, figure.Whole(float64(row.Samples))), right: true}, {t: r.text(muted, aside)},
	}
}

func limitOf(word string, o stat.Opt, unit string) string {
	if !finite(o).OK {
		return ""
	}
	return word + figure.Show(finite(o), unit)
}

// shownGPUField says that the absence of a field is said without -v.
func shownGPUField(f engine.GPUField) bool {
	return f == engine.GPUUtil || f == engine.GPUPowerW || f == engine.GPUVRAMUsed || f == engine.GPUTemperatureC
}

// sizing says whether less hardware would do.
func (r *probePage) sizing() {
	s := &r.s.Sizing
	if s.Text == "" && s.Reason == "" && s.Verdict == "" || r.folded() && !r.sized() {
		return
	}
	r.heading("Sizing", s.Verdict)
	if s.Text != "" {
		r.para(indent, indent, r.text(body, s.Text))
	}
	if len(s.Smaller) == 0 {
		r.line(indent, r.gap(cmp.Or(s.Reason, "no smaller card of the catalog is known to serve this")))
		return
	}
	t := &table{}
	t.add(r.columnHeads("$/h", "memory needed", "tok/s (est)", "$/1M tok")...)
	for i := range s.Smaller {
		t.add(r.card(&s.Smaller[i])...)
	}
	r.fitted(t)
	if date := s.Smaller[0].PriceDate; date != "" {
		r.line(indent, r.text(muted, "prices of "+date))
	}
}

func (r *probePage) card(c *capture.Card) []cell {
	name := c.Name
	if c.GPUs > 1 {
		name = figure.Whole(float64(c.GPUs)) + nbsp + "×" + nbsp + name
	}
	rate := absent
	if v := finite(c.TokensPerS); v.OK {
		rate = figure.Significant(v.V)
		if low, high := finite(c.Low), finite(c.High); low.OK && high.OK {
			rate += nbsp + "(" + figure.Significant(low.V) + nbsp + "to" + nbsp + figure.Significant(high.V) + ")"
		}
	}
	right := func(s string) cell { return cell{t: r.text(strong, s), right: true} }
	need := figure.Show(stat.Some(c.NeedBytes), "B") + nbsp + "of" + nbsp + figure.Show(stat.Some(c.VRAMBytes), "B")
	return []cell{{t: r.text(body, name)}, right(dollars(c.DollarsPerH)), right(need), right(rate), right(dollars(c.DollarsPerMTk))}
}

func dollars(o stat.Opt) string {
	if !finite(o).OK {
		return absent
	}
	return figure.Dollars(o.V)
}

// absences are the sources that could not be read.
func (r *probePage) absences() {
	missing := r.toldMissing()
	if len(missing) == 0 {
		return
	}
	r.heading("Not read", "")
	for _, m := range missing {
		said := m.What + ": " + m.Reason
		if m.Effect != "" {
			said += " → " + m.Effect
		}
		r.para(indent, indent+2, r.text(muted, said))
	}
}
