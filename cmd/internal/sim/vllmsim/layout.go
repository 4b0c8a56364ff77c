package vllmsim

import (
	"cmp"
	"slices"
	"strings"
)

// form is the way in which a slot of the page is written.
type form uint8

const (
	formValue  form = iota
	formBucket      // adds to the buckets below it
	formCount       // the sum of the buckets above it
)

// slot is a number of the page with the text before it.
type slot struct {
	text  string
	value *float64 // nil for formCount
	form  form
}

// layout is a page without its numbers. Everything that does not change between two pages is text:
// comments, names, labels, creation times.
type layout struct {
	slots []slot
	end   string // text after the last number
}

func (l *layout) append(buf []byte) []byte {
	cumulated := 0.0
	for i := range l.slots {
		s := &l.slots[i]
		buf = append(buf, s.text...)
		switch s.form {
		case formValue:
			buf = appendValue(buf, *s.value)
		case formBucket:
			cumulated += *s.value
			buf = appendValue(buf, cumulated)
		case formCount:
			buf = appendValue(buf, cumulated)
			cumulated = 0
		}
	}
	return append(buf, l.end...)
}

// label is one label of a series.
type label struct{ name, value string }

// builder writes a layout.
type builder struct {
	slots []slot
	text  strings.Builder // since the last number
}

func (w *builder) layout() layout { return layout{slots: w.slots, end: w.text.String()} }

// head writes the comments of a family.
func (w *builder) head(name, help string, k kind) {
	w.text.WriteString("# HELP " + name + " " + help + "\n# TYPE " + name + " " + k.String() + "\n")
}

// series writes the name of a sample and its labels, in alphabetical order.
func (w *builder) series(name string, labels ...label) {
	w.text.WriteString(name)
	if len(labels) > 0 {
		labels = slices.SortedFunc(slices.Values(labels), func(a, b label) int { return cmp.Compare(a.name, b.name) })
		for i, l := range labels {
			w.text.WriteByte("{,"[min(i, 1)])
			w.text.WriteString(l.name + `="` + labelEscapes.Replace(l.value) + `"`)
		}
		w.text.WriteByte('}')
	}
	w.text.WriteByte(' ')
}

// labelEscapes are those of the exposition format.
var labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// sample writes a series with a number that changes.
func (w *builder) sample(value *float64, f form, name string, labels ...label) {
	w.series(name, labels...)
	w.slots = append(w.slots, slot{text: w.text.String(), value: value, form: f})
	w.text.Reset()
	w.text.WriteByte('\n')
}

// constant writes a series whose number never changes.
func (w *builder) constant(value float64, name string, labels ...label) {
	w.series(name, labels...)
	w.text.WriteString(valueString(value) + "\n")
}

// histogram writes the samples of one histogram. In the multiprocess format the sum comes first.
func (w *builder) histogram(h *histogram, sumFirst bool, name string, labels ...label) {
	if sumFirst {
		w.sample(&h.sum, formValue, name+"_sum", labels...)
	}
	for i := range h.counts {
		le := "+Inf"
		if i < len(h.bounds) {
			le = valueString(h.bounds[i])
		}
		w.sample(&h.counts[i], formBucket, name+"_bucket", append(slices.Clip(labels), label{"le", le})...)
	}
	w.sample(nil, formCount, name+"_count", labels...)
	if !sumFirst {
		w.sample(&h.sum, formValue, name+"_sum", labels...)
	}
}
