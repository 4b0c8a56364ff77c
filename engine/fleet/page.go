package fleet

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Page returns the page of servers that are ranked already.
func Page(list []Server) *page.Page {
	p := &page.Page{Title: "rooftop: " + figure.Counted(len(list), "server")}
	first := page.Section{ID: "answer", Nodes: []page.Node{answer(list)}}
	if text := NotRead(list); text != "" {
		first.Add(page.Inset(page.Mark(page.Warn, text)))
	}
	rows := make([]*Server, len(list))
	for i := range list {
		rows[i] = &list[i]
	}
	p.Sections = append(p.Sections, first, page.Section{ID: "servers", Title: "Servers", Note: "what to look at first on top", Nodes: []page.Node{Table(rows, 0)}})
	if shown := FindingsPage(Findings(list)); len(shown) > 0 {
		p.Sections = append(p.Sections, page.Section{ID: "groups", Title: "Servers of one model", Nodes: []page.Node{shown}})
	}
	return p
}

// FindingsPage returns what is uneven among servers of one model.
func FindingsPage(list []Finding) page.Findings {
	var shown page.Findings
	for _, f := range list {
		tone := page.Warn
		if f.ID == OneIll {
			tone = page.Bad
		}
		shown = append(shown, page.Finding{ID: string(f.ID), Tone: tone, Word: tone.Name(), Title: page.Toned(page.Strong, f.Model+": "+spoken(f.ID)), Evidence: []string{f.Text}})
	}
	return shown
}

// spoken returns the name of a finding in words: "uneven load".
func spoken(id FindingID) string { return strings.ReplaceAll(string(id), "-", " ") }

// NotRead says how many servers could not be read, and why; "" if all were.
func NotRead(list []Server) string {
	n, why := 0, ""
	for i := range list {
		if s := &list[i]; s.Unread != "" {
			if n++; n == 1 {
				why = s.Name + ": " + s.Unread
			}
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return "1 of " + figure.Counted(len(list), "server") + " could not be read: " + why
	}
	return figure.Whole(float64(n)) + " of " + figure.Counted(len(list), "server") + " could not be read, as " + why
}

// answer says in one line which server to look at first.
func answer(list []Server) page.Node {
	tone, text := Answer(list)
	return page.Prose{Text: page.Join(page.Mark(tone, tone.Name()), page.Toned(page.Strong, figure.NBSP+" "+text)), Lead: true}
}

// Answer says which server to look at first, and what to do, with its tone.
func Answer(list []Server) (page.Tone, string) {
	unjudged := 0
	for i := range list {
		switch s := &list[i]; {
		case s.Outcome == engine.OutcomeNotEvaluable: // or not read
			unjudged++
		case s.Condition.Ill():
			return page.Bad, s.Name + ": " + s.Condition.String()
		case s.Changes():
			return page.Warn, s.Name + ": " + todo(s)
		}
	}
	switch {
	case unjudged > 0 && unjudged == len(list):
		return page.Warn, "No server could be judged"
	case unjudged > 0:
		return page.Warn, "No flag to change on the " + figure.Counted(len(list)-unjudged, "server") + " that could be judged"
	}
	return page.OK, "No server has a flag to change"
}

// todo returns the recommended change with its predicted gain; "" without one.
func todo(s *Server) string {
	text := change(s)
	if g := s.Gain(); text != "" && g.Mid.OK {
		text += ", output " + tuning.Interval(g.Mid, g.Low, g.High)
	}
	return text
}

// state returns the state of a server in a word, with its tone.
func state(s *Server) (page.Tone, string) {
	if s.Unread != "" {
		return page.Warn, "not read"
	}
	return tuning.ServerState(&s.Diagnosis)
}

// change returns what to change on a server, "" if nothing.
func change(s *Server) string {
	switch r := s.Recommendation; {
	case r == nil:
		return ""
	case r.Kind == engine.KindFlag:
		return tuning.Changes(r.Changes()...)
	default:
		return tuning.FixBy(r.Kind)
	}
}

// ofAchievable returns the share of the achievable output that a server reaches.
func ofAchievable(s *Server) stat.Opt {
	if p := s.Ceiling.Physical; p != nil {
		return s.Current("generation_tokens_per_s").Div(p.AchievableTokensPerS)
	}
	return stat.None
}

// span returns a range of dollars an hour as a cell.
func span(w Span) page.Cell {
	if !w.Low.OK || !w.High.OK {
		return page.Amount(w.Mid, "USD")
	}
	return page.Cell{Text: figure.Dollars(w.Low.V) + " to " + figure.Dollars(w.High.V), Value: w.Mid}
}

// fields are the columns of the table of servers. A reader may sort by those with Sort.
func fields() []page.Field[*Server] {
	figureOf := func(head, name, unit string) page.Field[*Server] {
		return page.Right(head, page.Body, func(s *Server) page.Cell { return page.Amount(s.Current(name), unit) })
	}
	sorts := func(f page.Field[*Server], rank int) page.Field[*Server] {
		f.Sort, f.Rank = true, rank
		return f
	}
	return []page.Field[*Server]{
		sorts(page.Name("server", func(s *Server) string { return s.Name }), 0),
		{Column: page.Column{Head: "state", Left: true}, Cell: func(s *Server) page.Cell {
			tone, word := state(s)
			return page.Cell{Text: tone.Sign() + figure.NBSP + word, Tone: tone}
		}},
		sorts(page.Right("output", page.Accent, func(s *Server) page.Cell {
			g := s.Gain().Mid
			return page.Cell{Text: tuning.Change(g), Value: g.Finite()}
		}), 0),
		sorts(page.Right("saves $/h (est)", page.Accent, func(s *Server) page.Cell { return span(s.Waste()) }), 1),
		sorts(figureOf("tok/s", "generation_tokens_per_s", ""), 2),
		sorts(page.Right("of achievable (est)", page.Body, func(s *Server) page.Cell { return page.Share(ofAchievable(s)) }), 6),
		sorts(figureOf("running", "running_mean", ""), 3),
		sorts(figureOf("waiting", "waiting_mean", ""), 4),
		sorts(figureOf("KV peak", "kv_usage_peak", "ratio"), 5),
		sorts(page.Left("model", page.Muted, func(s *Server) string { return s.Target.Model }), 7),
		page.Left("release", page.Muted, func(s *Server) string { return s.Target.EngineVersion }).Ranked(8),
		page.Left("GPU", page.Muted, func(s *Server) string { return s.Facts.GPUName.Value }).Ranked(9),
		page.Left("change", page.Accent, change),
	}
}

// Order is the order of the servers in a table: the column to sort by, counted from 1 among those that can be sorted
// by. Its zero value is what to look at first, as [fleet.Rank] has it.
type Order int

// Next returns the order by the next column.
func (o Order) Next() Order {
	if (o + 1).column() < 0 {
		return 0
	}
	return o + 1
}

// column returns the index of the column that an order sorts by, -1 for none.
func (o Order) column() int {
	for i, f := range fields() {
		if f.Sort {
			o--
		}
		if f.Sort && o == 0 {
			return i
		}
	}
	return -1
}

// Sort sorts ranked servers.
func (o Order) Sort(list []*Server) {
	if c := o.column(); c >= 0 {
		fields()[c].SortRows(list)
	}
}

// Table returns the table of servers, which are in an order already.
func Table(list []*Server, o Order) *page.Table {
	t := page.Tabulate(list, fields())
	if c := o.column(); c >= 0 {
		t.Sorted, t.Columns[c].Rank = c+1, 0
	}
	return t
}

// GroupsTable returns the table of groups of servers.
func GroupsTable(list []Group, by By) *page.Table {
	sum := func(head, name string, rank int) page.Field[Group] {
		return page.Right(head, page.Body, func(g Group) page.Cell { return page.Amount(Sum(g.Servers, name), "") }).Ranked(rank)
	}
	count := func(head string, tone page.Tone, is func(*Server) bool) page.Field[Group] {
		return page.Right(head, page.Body, func(g Group) page.Cell {
			c := page.Integer(Count(g.Servers, is))
			if c.Value.V > 0 {
				c.Tone = tone
			}
			return c
		})
	}
	return page.Tabulate(list, []page.Field[Group]{
		page.Name(by.String(), func(g Group) string { return g.Name }),
		page.Right("servers", page.Strong, func(g Group) page.Cell { return page.Integer(len(g.Servers)) }),
		count("ill", page.Bad, func(s *Server) bool { return s.Condition.Ill() }),
		count("not read", page.Warn, func(s *Server) bool { return s.Unread != "" }).Ranked(2),
		count("to change", page.Warn, (*Server).Changes),
		page.Right("saves $/h (est)", page.Accent, func(g Group) page.Cell { return span(Waste(g.Servers)) }).Ranked(1),
		sum("tok/s", "generation_tokens_per_s", 3),
		sum("running", "running_mean", 4),
		sum("waiting", "waiting_mean", 5),
		{Column: page.Column{Head: "uneven", Left: true, Tone: page.Warn, Rank: 6}, Cell: func(g Group) page.Cell {
			var words []string
			for _, f := range g.Findings() {
				words = append(words, spoken(f.ID))
			}
			return page.Words(strings.Join(words, ", "))
		}},
	})
}

// Brief returns the most important facts about one server in three lines: what to do, its load, and what it is.
func Brief(s *Server) page.Facts {
	var list page.Facts
	add := func(label string, tone page.Tone, text string) {
		list = append(list, page.Fact{Label: label, Text: page.Toned(tone, text), MaxLines: 1})
	}
	tone, word := state(s)
	switch {
	case s.Unread != "":
		add("not read", tone, s.Unread)
	case s.Condition.Ill():
		add("ill", tone, tuning.Sentence(s.Condition.String()))
	case s.Recommendation != nil:
		text := todo(s)
		if w := s.Waste(); w.Mid.OK {
			text += ", saves " + span(w).Text + " an hour (est)"
		}
		add("do", page.Accent, text)
	case s.Overload != "":
		add("state", tone, word+": "+figure.Stopped(s.Overload))
	case s.Doubt != "":
		add("state", tone, word+": "+figure.Stopped(s.Doubt))
	case s.Outcome == engine.OutcomeHealthy:
		add("state", tone, word+": no flag to change.")
	default:
		add("state", tone, word+": nothing could be judged.")
	}
	var load []string
	for _, q := range [...][3]string{{"running_mean", "", " running"}, {"waiting_mean", "", " waiting"}, {"kv_usage_peak", "ratio", " KV peak"}, {"generation_tokens_per_s", "tok/s", ""}} {
		if v := s.Current(q[0]); v.OK {
			load = append(load, figure.Show(v, q[1])+q[2])
		}
	}
	if v := ofAchievable(s); v.OK {
		load = append(load, figure.Show(v, "ratio")+" of achievable (est)")
	}
	if len(load) == 0 {
		load = []string{figure.Absent}
	}
	add("load", page.Body, strings.Join(load, ", "))
	var about []string
	if s.Target.Model != "" {
		target := s.Target
		target.URL = "" // its name stands above
		about = append(about, tuning.Served(target))
	}
	for _, more := range []string{s.Facts.GPUName.Value, s.Deployment} {
		if more != "" {
			about = append(about, more)
		}
	}
	add("is", page.Muted, cmp.Or(strings.Join(about, ", "), figure.Absent))
	return list
}

// ServerSections returns the page of one server: its diagnosis, and how to see it alone.
func ServerSections(s *Server) []page.Section {
	var list []page.Section
	if s.Unread != "" {
		list = append(list, page.Section{ID: "answer", Nodes: []page.Node{
			page.Prose{Text: page.Join(page.Mark(page.Warn, "not read:"), page.Toned(page.Strong, " "+figure.Stopped(s.Unread))), Lead: true},
		}})
	} else {
		for _, sec := range tuning.Diagnosis(&s.Diagnosis, tuning.Options{}).Sections {
			if !sec.Terminal {
				list = append(list, sec)
			}
		}
	}
	if s.Command != "" {
		list = append(list, page.Section{ID: "alone", Title: "This server alone", Nodes: []page.Node{page.Command(s.Command)}})
	}
	return list
}

// Counts returns how many servers there are, and how many are ill, not read, and to be changed; each with its
// tone. Zero counts are left out.
func Counts(list []Server) page.Text {
	text := page.Toned(page.Strong, figure.Counted(len(list), "server"))
	for _, c := range []struct {
		tone page.Tone
		word string
		is   func(*Server) bool
	}{
		{page.Bad, "ill", func(s *Server) bool { return s.Condition.Ill() }},
		{page.Warn, "not read", func(s *Server) bool { return s.Unread != "" }},
		{page.Warn, "to change", (*Server).Changes},
	} {
		if n := Count(list, c.is); n > 0 {
			text = append(text, page.Span{Text: strconv.Itoa(n) + figure.NBSP + c.word, Tone: c.tone})
		}
	}
	if w := Waste(list); w.Mid.OK {
		text = append(text, page.Span{Text: "saves " + span(w).Text + " an hour (est)", Tone: page.Accent})
	}
	return text
}
