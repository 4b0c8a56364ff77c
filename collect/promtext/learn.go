package promtext

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

// batch is how many label blocks go to expfmt at once: its intermediate form
// takes about a kilobyte each.
const batch = 512

// learn identifies the unseen series. Their label blocks go through expfmt, each
// distinct one once; a histogram's buckets are the bulk of a page, and families
// with equal bounds share them.
func (f *Families) learn() error {
	if len(f.unseen) == 0 {
		return nil
	}
	if len(f.known) == 0 {
		f.known = make(map[string]*Series, len(f.unseen))
		f.same = make(map[uint64]*Series, len(f.unseen))
		f.blocks = make(map[string]block, len(f.unseen)/2)
	}
	if err := f.learnBlocks(); err != nil {
		return err
	}
	for _, u := range f.unseen {
		text := string(u.text)
		b := f.blocks[string(u.block())]
		name := text[:u.nameLength]
		if u.nameLength == 0 {
			name = b.name
		} else if !model.LegacyValidation.IsValidMetricName(name) {
			return fmt.Errorf("%w: line %d: invalid metric name %q", ErrMalformed, u.line, excerpt(u.text))
		}
		s := f.intern(name, b.labels)
		f.known[text] = s
		f.Samples[u.at].Series = s
	}
	return nil
}

// block returns the braces with what is between them.
func (u *unseen) block() []byte { return bytes.TrimLeft(u.text[u.nameLength:], " \t") }

// learnBlocks reads the blocks of the unseen series that are new.
func (f *Families) learnBlocks() error {
	var parser expfmt.TextParser
	var lines []int // of the page, by line of the batch
	text := slices.Grow(f.scratch[:0], 16*min(len(f.unseen), batch))
	flush := func() error {
		err := f.readBlocks(&parser, text, lines)
		text, lines = text[:0], lines[:0]
		return err
	}
	for i := range f.unseen {
		b := f.unseen[i].block()
		if _, found := f.blocks[string(b)]; found {
			continue
		}
		f.blocks[string(b)] = block{} // pending, so that it is read once
		if len(b) == 0 {
			continue
		}
		if len(lines) == 0 {
			parser = expfmt.NewTextParser(model.UTF8Validation)
		}
		if f.unseen[i].nameLength > 0 {
			text = append(text, 'x') // a name is needed; one in braces is part of the block
		}
		text = append(text, b...)
		text = append(text, ' ')
		text = strconv.AppendInt(text, int64(i), 10)
		text = append(text, '\n')
		if lines = append(lines, int(f.unseen[i].line)); len(lines) == batch {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	err := flush()
	f.scratch = text
	return err
}

// readBlocks hands blocks to expfmt as untyped samples whose value is the index
// of the unseen series they came from.
func (f *Families) readBlocks(parser *expfmt.TextParser, text []byte, lines []int) error {
	if len(lines) == 0 {
		return nil
	}
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		var parse expfmt.ParseError
		if errors.As(err, &parse) && parse.Line >= 1 && parse.Line <= len(lines) {
			return fmt.Errorf("%w: line %d: %s", ErrMalformed, lines[parse.Line-1], parse.Msg)
		}
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	read := 0
	for _, name := range slices.Sorted(maps.Keys(families)) {
		for _, m := range families[name].GetMetric() {
			i := int(m.GetUntyped().GetValue())
			if m.GetUntyped() == nil || i < 0 || i >= len(f.unseen) {
				return fmt.Errorf("%w: %q is read as another type", ErrMalformed, name)
			}
			b := block{labels: make([]Label, 0, len(m.GetLabel())), name: name}
			for _, l := range m.GetLabel() {
				b.labels = append(b.labels, Label{Name: l.GetName(), Value: l.GetValue()})
			}
			slices.SortStableFunc(b.labels, func(x, y Label) int { return cmp.Compare(x.Name, y.Name) })
			f.blocks[string(f.unseen[i].block())] = b
			read++
		}
	}
	if read != len(lines) {
		return fmt.Errorf("%w: %d of %d label sets could not be read", ErrMalformed, len(lines)-read, len(lines))
	}
	return nil
}

// dedupe moves every second sample of a series to Duplicates.
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
