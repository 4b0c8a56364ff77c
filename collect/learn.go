package collect

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

const (
	// batch is the number of lines that expfmt parses at once. Its intermediate form takes
	// about a kilobyte a line.
	batch = 512
	// labelsPerLine is the number of labels of a block that go into one line. expfmt's work
	// grows with the square of it.
	labelsPerLine = 8
)

// learnUnseen creates the unseen series. expfmt parses each distinct label block once:
// histogram buckets are the bulk of a page, and families with equal bounds share their
// blocks.
func (f *Families) learnUnseen() error {
	if len(f.unseen) == 0 {
		return nil
	}
	if len(f.known) == 0 {
		f.known = make(map[string]*Series, len(f.unseen))
		f.same = make(map[uint64]*Series, len(f.unseen))
		f.blocks = make(map[string]*block, len(f.unseen)/2)
	}
	l := learner{text: f.scratch[:0]}
	for i := range f.unseen {
		b := f.unseen[i].block()
		if _, found := f.blocks[string(b)]; found {
			continue
		}
		fresh := &block{}
		f.blocks[string(b)] = fresh
		if err := l.add(&f.unseen[i], b, fresh); err != nil {
			return err
		}
	}
	if err := l.flush(); err != nil {
		return err
	}
	f.scratch = l.text
	for _, u := range f.unseen {
		if err := f.identify(&u); err != nil {
			return err
		}
	}
	return nil
}

// identify sets the series of an unseen sample.
func (f *Families) identify(u *unseen) error {
	text := string(u.text)
	b := f.blocks[string(u.block())]
	name := text[:u.nameLength]
	switch {
	case u.nameLength == 0:
		name = b.name
	case !model.LegacyValidation.IsValidMetricName(name):
		return fmt.Errorf("%w: line %d: invalid metric name in %q", ErrMalformed, u.line, excerpt(u.text))
	}
	if !b.sorted {
		slices.SortStableFunc(b.labels, func(x, y Label) int { return cmp.Compare(x.Name, y.Name) })
		b.sorted = true
		for i := 1; i < len(b.labels); i++ {
			if b.labels[i].Name == b.labels[i-1].Name {
				return fmt.Errorf("%w: line %d: duplicate label %q", ErrMalformed, u.line, b.labels[i].Name)
			}
		}
		b.labels = slices.DeleteFunc(b.labels, func(l Label) bool { return l.Value == "" })
	}
	s := f.intern(name, b.labels)
	f.known[text] = s
	f.Samples[u.at].Series = s
	return nil
}

// learner passes label blocks to expfmt as untyped samples. The value of each is the
// number of its line in the batch, which leads back to the block.
type learner struct {
	parser *expfmt.TextParser
	text   []byte
	blocks []*block // by line of the batch
	lines  []int32  // line of the page, by line of the batch
}

// add queues a block, in several lines if it has many labels.
func (l *learner) add(u *unseen, text []byte, to *block) error {
	if u.nameLength == 0 {
		return l.line(u.line, to, text) // an entry within the braces is the name
	}
	for len(text) > 0 {
		var piece []byte
		piece, text = pieceOf(text)
		if err := l.line(u.line, to, []byte("x{"), piece, []byte("}")); err != nil {
			return err
		}
	}
	return nil
}

// pieceOf splits off the first labelsPerLine labels of the text between braces.
func pieceOf(text []byte) (piece, rest []byte) {
	quoted, labels := false, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			if labels++; labels == labelsPerLine {
				return text[:i], text[i+1:]
			}
		}
	}
	return text, nil
}

// line adds one line, made of parts, to the batch and flushes a full batch. pageLine is
// the line of the page, for error messages.
func (l *learner) line(pageLine int32, to *block, parts ...[]byte) error {
	for _, part := range parts {
		l.text = append(l.text, part...)
	}
	l.text = append(l.text, ' ')
	l.text = strconv.AppendInt(l.text, int64(len(l.blocks)), 10)
	l.text = append(l.text, '\n')
	l.blocks, l.lines = append(l.blocks, to), append(l.lines, pageLine)
	if len(l.blocks) < batch {
		return nil
	}
	return l.flush()
}

// flush parses the batch and fills its blocks.
func (l *learner) flush() error {
	if len(l.blocks) == 0 {
		return nil
	}
	if l.parser == nil {
		parser := expfmt.NewTextParser(model.UTF8Validation)
		l.parser = &parser
	}
	families, err := l.parser.TextToMetricFamilies(bytes.NewReader(l.text))
	if err != nil {
		var parse expfmt.ParseError
		if errors.As(err, &parse) && parse.Line >= 1 && parse.Line <= len(l.lines) {
			return fmt.Errorf("%w: line %d: %s", ErrMalformed, l.lines[parse.Line-1], parse.Msg)
		}
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	read := 0
	for _, name := range slices.Sorted(maps.Keys(families)) {
		for _, m := range families[name].GetMetric() {
			i := int(m.GetUntyped().GetValue())
			if m.GetUntyped() == nil || i < 0 || i >= len(l.blocks) {
				return fmt.Errorf("%w: %q is read as another type", ErrMalformed, name)
			}
			to := l.blocks[i]
			to.name = name
			to.labels = slices.Grow(to.labels, len(m.GetLabel()))
			for _, label := range m.GetLabel() {
				to.labels = append(to.labels, Label{Name: label.GetName(), Value: label.GetValue()})
			}
			read++
		}
	}
	if read != len(l.blocks) {
		return fmt.Errorf("%w: %d of %d label sets could not be read", ErrMalformed, len(l.blocks)-read, len(l.blocks))
	}
	l.text, l.blocks, l.lines = l.text[:0], l.blocks[:0], l.lines[:0]
	return nil
}

// dedupe keeps the first sample of each series and moves the others to Duplicates.
func (f *Families) dedupe() {
	kept := f.Samples[:0]
	for _, s := range f.Samples {
		if s.page == f.page {
			f.Duplicates = append(f.Duplicates, s.Series)
			continue
		}
		s.page = f.page
		kept = append(kept, s)
	}
	f.Samples = kept
}
