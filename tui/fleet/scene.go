package fleet

import (
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/fleet"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// Views of a list of servers.
const (
	viewServers frame.ViewID = iota
	viewGroups
	viewServer
	numViews
)

// tabs returns the names of the views.
func tabs() []string { return []string{"Servers", "Groups", "Server"} }

// drawScreen draws the screen on a canvas of w by h cells. l is nil before the first snapshot.
func drawScreen(l *fleet.Live, u *frame.Settings, set *choices, w, h int) (*cell.Canvas, frame.Extent) {
	if l == nil {
		l = &fleet.Live{}
	}
	v := newView(l, u, set)
	s := &frame.Scene{
		Elapsed: l.Now, Identity: v.identity(), Marks: v.marks(), Views: tabs(), Stage: v.stage(), Banner: v.banner(),
		Body:  v.draw,
		Hints: hints(v), Quit: frame.Hint{Binding: boundKeys().Quit, Word: "quit"},
		Guide: func() frame.Guide { return guide(v) },
		Small: v.small,
	}
	return frame.Compose(s, u, w, h)
}

// identity returns the header's parts: product, source, and the number of servers in each state.
func (v *view) identity() []frame.Part {
	parts := []frame.Part{{Token: cell.Title, Text: "rooftop", Gap: 2, Keep: 2}, {Token: cell.Title, Text: "fleet", Gap: 2, Keep: 1}}
	if v.l.Source != "" {
		parts = append(parts, frame.Part{Token: cell.Body, Text: v.l.Source, Gap: 2, Keep: 3})
	}
	if v.l.Servers != nil {
		for i, span := range fleet.Counts(v.l.Servers) {
			parts = append(parts, frame.Part{Token: span.Tone, Text: span.Text, Gap: 2, Keep: 20 - i})
		}
	}
	return parts
}

// marks returns the marks of the header.
func (v *view) marks() []frame.Remark {
	var marks []frame.Remark
	if v.u.Frozen {
		marks = append(marks, frame.Remark{Token: cell.Selected, Text: " FROZEN "})
	}
	if v.old() {
		marks = append(marks, frame.Remark{Token: cell.Bad, Text: "OLD"})
	}
	if fleet.Count(v.l.Servers, func(s *fleet.Server) bool { return s.Target.Simulated }) > 0 {
		marks = append(marks, frame.Remark{Token: cell.Warn, Text: "SIMULATED"})
	}
	return marks
}

// old reports whether the list is from before the latest reading, which failed.
func (v *view) old() bool { return v.l.Servers != nil && v.l.Failed != "" }

// stage returns the age of the list, and the progress of a reading.
func (v *view) stage() frame.Stage {
	l := v.l
	age := figure.Elapsed(max(0, l.Age()))
	progress := ""
	const long = 5 * time.Second // after which a reading is mentioned
	switch took := l.Now - l.Began; {
	case l.All > 0:
		progress = " " + figure.Whole(float64(l.Done)) + " of " + figure.Whole(float64(l.All))
	case took >= long:
		progress = " for " + figure.Elapsed(took)
	}
	switch {
	case l.Servers == nil && l.Reading:
		return frame.Stage{Words: "reading" + progress, Word: "reading", Token: cell.Accent}
	case l.Servers == nil:
		return frame.Stage{Words: "nothing read", Word: "nothing", Token: cell.Bad}
	case v.old():
		return frame.Stage{Words: "list is " + age + " old", Word: age + " old", Token: cell.Bad}
	case l.Reading:
		return frame.Stage{Words: "reading" + progress + ", list is " + age + " old", Word: age + " old", Token: cell.Accent}
	}
	return frame.Stage{Words: "read " + age + " ago", Word: age, Token: cell.OK}
}

// banner returns the problems of what is shown.
func (v *view) banner() frame.Remarks {
	l, g := v.l, v.u.Glyphs
	switch text := fleet.NotRead(l.Servers); {
	case v.old():
		return frame.Remarks{{Token: cell.Bad, Text: g.Bad + " Showing the last values, " + figure.Elapsed(l.Age()) + " old. The reading " + figure.Elapsed(l.Now-l.FailedAt) + " ago failed: " + figure.Stopped(l.Failed)}}
	case text != "" && v.u.View != viewServer:
		return frame.Remarks{{Token: cell.Warn, Text: g.Warn + " " + figure.Stopped(text)}}
	}
	return nil
}

// placeholder describes what happens while there are no servers.
func (v *view) placeholder() []page.Section {
	l := v.l
	var facts page.Facts
	facts.Add("from", page.Body, l.Source)
	if l.All > 0 {
		facts.Add("read", page.Body, figure.Whole(float64(l.Done))+" of "+figure.Whole(float64(l.All)))
	}
	top := page.Section{Title: "Reading the servers", Note: figure.Clock(l.Now), Nodes: []page.Node{page.Paragraph(page.Toned(page.Body, v.waiting())), facts}}
	last := "The list shows as soon as all are read."
	list := []page.Section{top}
	if l.Failed != "" {
		list[0].Title = "No server was read"
		list = append(list, page.Section{Title: "What you can do", Nodes: []page.Node{frame.Steps([][2]string{{"m", "read again now"}, {"q", "quit"}})}})
		last = "rooftop reads again every " + figure.Duration(l.Every) + "."
	}
	return append(list, page.Section{Nodes: []page.Node{page.Paragraph(page.Toned(page.Muted, last))}})
}

// waiting says why there are no servers yet.
func (v *view) waiting() string {
	if v.l.Failed != "" {
		return figure.Stopped(v.l.Failed)
	}
	return "rooftop reads and diagnoses each of them. The first reading takes longest."
}

// small returns the list in a few words, the most urgent first.
func (v *view) small(brief bool) frame.Remarks {
	list, whole := frame.Overlaid(v.u, hints(v))
	if whole {
		return list
	}
	if v.l.Servers == nil {
		list.Add(cell.Body, v.waiting())
		return list
	}
	for _, r := range v.banner() {
		list.Add(r.Token, r.Text)
	}
	tone, text := fleet.Answer(v.l.Servers)
	list.Add(tone, v.u.Sign(tone)+" "+text)
	if !brief {
		var words []string
		for _, span := range fleet.Counts(v.l.Servers) {
			words = append(words, span.Text)
		}
		list.Add(cell.Body, strings.Join(words, ", "))
	}
	g := v.stage()
	list.Add(g.Token, g.Words)
	return list
}

// uneven returns what is uneven among servers.
func uneven(list []fleet.Server, u *frame.Settings) []page.Text {
	var out []page.Text
	for _, f := range fleet.FindingsPage(fleet.Findings(list)) {
		out = append(out, page.Join(page.Toned(f.Tone, u.Sign(f.Tone), figure.NBSP), f.Title, page.Toned(page.Muted, ": "+strings.Join(f.Evidence, "; "))))
	}
	return out
}
