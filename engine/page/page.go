// Package page models a report or screen as data: a page of sections whose nodes carry
// finished texts and formatted figures. Renderers draw a page as terminal text, on a screen,
// as Markdown and as HTML; they add no words about the subject. The package is pure.
package page

import (
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
)

// Page is a complete report on one subject.
type Page struct {
	Title    string // title of a document
	Foot     string // text below a document
	Sections []Section
}

// Section is a part of a page. Renderers leave out a section without nodes to show.
type Section struct {
	ID     string // unique on its page, lower case
	Title  string // "" continues the previous section without a heading
	Note   string // shown beside the title: what the figures are
	Detail bool   // shown only in verbose output
	// Terminal marks a section that only terminals show, such as where to find more.
	Terminal bool
	// Beside places a short table next to the preceding sections with the same mark where the
	// width allows.
	Beside bool
	Nodes  []Node
}

// Node is implemented by [Prose], [Command], [Facts], [*Table], [Findings], [*Series],
// [*Timeline] and [*Plot].
type Node interface{ node() }

func (Prose) node()     {}
func (Command) node()   {}
func (Facts) node()     {}
func (*Table) node()    {}
func (Findings) node()  {}
func (*Series) node()   {}
func (*Timeline) node() {}
func (*Plot) node()     {}

// Add appends nodes to the section.
func (s *Section) Add(nodes ...Node) { s.Nodes = append(s.Nodes, nodes...) }

// Tone is the meaning of a piece of text. Colour only repeats what words and signs express.
type Tone uint8

// Tones.
const (
	Body Tone = iota
	Strong
	Muted
	Accent
	OK
	Warn
	Bad
)

// Sign returns the mark to print before a word of this tone.
func (t Tone) Sign() string {
	switch t {
	case OK:
		return "●"
	case Warn:
		return "▲"
	case Bad:
		return "✖"
	}
	return figure.Absent
}

// Name returns the lower-case name of the tone, or "" for [Body].
func (t Tone) Name() string {
	return [...]string{"", "strong", "muted", "accent", "ok", "warn", "bad"}[t]
}

// Span is a piece of text in one tone.
type Span struct {
	Text string
	Tone Tone
}

// Text is a line, or the content of a paragraph. A no-break space prevents a line break.
type Text []Span

// Toned returns the concatenated parts as text of one tone.
func Toned(t Tone, parts ...string) Text { return Text{{strings.Join(parts, ""), t}} }

// Mark returns the tone's sign and a word, joined by a no-break space.
func Mark(t Tone, word string) Text { return Toned(t, t.Sign(), figure.NBSP, word) }

// Join concatenates texts.
func Join(parts ...Text) Text {
	var all Text
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// String returns the text without its tones.
func (t Text) String() string {
	var b strings.Builder
	for _, s := range t {
		b.WriteString(s.Text)
	}
	return b.String()
}

// Prose is a paragraph.
type Prose struct {
	Text     Text
	Lead     bool // the headline of the page
	Inset    bool // indented
	MaxLines int  // on a terminal; longer text ends in an ellipsis; 0 is unlimited
}

// Paragraph returns a paragraph of concatenated texts.
func Paragraph(parts ...Text) Prose { return Prose{Text: Join(parts...)} }

// Inset returns an indented paragraph of concatenated texts.
func Inset(parts ...Text) Prose { return Prose{Text: Join(parts...), Inset: true} }

// Command is a shell command that a reader may copy.
type Command string

// Facts is a list of labelled texts.
type Facts []Fact

// Fact is one labelled text. The label "" continues the previous fact.
type Fact struct {
	Label    string
	Text     Text
	Detail   bool // shown only in verbose output
	MaxLines int  // on a terminal; longer text ends in an ellipsis; 0 is unlimited
	// NoWrap keeps the text on one line, however long, such as a path to copy.
	NoWrap bool
}

// Add appends a fact unless text is empty.
func (f *Facts) Add(label string, t Tone, text string) {
	if text != "" {
		*f = append(*f, Fact{Label: label, Text: Toned(t, text)})
	}
}

// Findings is a list of findings, most severe first.
type Findings []Finding

// Finding is one finding with its evidence.
type Finding struct {
	ID       string
	Tone     Tone
	Word     string // severity
	Title    Text
	Evidence []string
}
