package collect

import (
	"cmp"
	"errors"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Label is one name-value pair of a series.
type Label struct{ Name, Value string }

// Series is the identity of a sample: a wire name (with _total, _bucket, …) and
// its labels, sorted by name; a label without a value is none. A Series is immutable, and the same series has the
// same pointer from one page to the next.
type Series struct {
	Name   string
	Labels []Label

	page uint64 // number of the last page with this series
}

// Label returns the value of a label, "" if the series lacks it.
func (s *Series) Label(name string) string {
	for i := range s.Labels {
		if s.Labels[i].Name == name {
			return s.Labels[i].Value
		}
	}
	return ""
}

// String returns the series in exposition format: name{label="value"}.
func (s *Series) String() string {
	var b strings.Builder
	b.WriteString(s.Name)
	for i, l := range s.Labels {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteString(l.Name + `="` + escape.Replace(l.Value) + `"`)
	}
	if len(s.Labels) > 0 {
		b.WriteByte('}')
	}
	return b.String()
}

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// Sample is one value of a page. It may be NaN or infinite.
type Sample struct {
	*Series
	Value float64
}

// Families holds the samples of a page that passed the filter, in the page's
// order, and the memory that the next page reuses: keep one for each server.
// The zero value is ready to use. It is not safe for concurrent use.
type Families struct {
	Samples []Sample
	// Duplicates are series that the page has more than once. The first value counts, as
	// in Prometheus.
	Duplicates []*Series

	page  uint64             // number of the current page
	known map[string]*Series // by the text in front of the value
	same  map[uint64]*Series // by hash of name and sorted labels: label order does not matter
	seed  maphash.Seed

	parser expfmt.TextParser
}

// Reset empties f but keeps its memory.
func (f *Families) Reset() {
	f.Samples, f.Duplicates = f.Samples[:0], f.Duplicates[:0]
}

// dropStale drops the known series if most of them are stale, so that a page with ever
// new labels uses bounded memory.
func (f *Families) dropStale() {
	if f.known == nil || len(f.known) > 2*len(f.Samples)+256 {
		f.known, f.same = map[string]*Series{}, map[uint64]*Series{}
		f.seed = maphash.MakeSeed()
		f.parser = expfmt.NewTextParser(model.UTF8Validation)
	}
}

// series returns the one Series for a text in front of a value. why says what is invalid, "" if nothing is.
func (f *Families) series(text []byte) (s *Series, why string) {
	if s := f.known[string(text)]; s != nil {
		return s, ""
	}
	key := string(text)
	name, labels, why := f.parseSeries(key)
	if why != "" {
		return nil, why
	}
	s = f.intern(name, labels)
	f.known[key] = s
	return s, ""
}

// intern returns the one Series for a name and sorted labels.
func (f *Families) intern(name string, labels []Label) *Series {
	var h maphash.Hash
	h.SetSeed(f.seed)
	h.WriteString(name)
	for _, l := range labels {
		h.WriteByte(0xff) // in no UTF-8 text
		h.WriteString(l.Name)
		h.WriteByte(0xff)
		h.WriteString(l.Value)
	}
	key := h.Sum64()
	if s, found := f.same[key]; found && s.Name == name && slices.Equal(s.Labels, labels) {
		return s
	}
	s := &Series{Name: name, Labels: labels}
	f.same[key] = s
	return s
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

// parseSeries parses a name with its labels: name{label="value"}, or {"name",label="value"} with any UTF-8 name.
// The labels are sorted by name; those without a value do not count. why says what is invalid, "" if nothing is.
func (f *Families) parseSeries(text string) (name string, labels []Label, why string) {
	// A label has two quotes that are not escaped. expfmt's work grows with the square of their number.
	if strings.Count(text, `"`)-strings.Count(text, `\"`) > 2*maxLabels {
		return "", nil, "more than " + strconv.Itoa(maxLabels) + " labels"
	}
	families, err := f.parser.TextToMetricFamilies(strings.NewReader(text + " 0\n"))
	if invalid := (expfmt.ParseError{}); errors.As(err, &invalid) {
		return "", nil, invalid.Msg
	} else if err != nil {
		return "", nil, err.Error()
	}
	for key, family := range families {
		name = key
		for _, l := range family.GetMetric()[0].GetLabel() {
			if l.GetValue() != "" {
				labels = append(labels, Label{l.GetName(), l.GetValue()})
			}
		}
	}
	if before, _, _ := strings.Cut(text, "{"); strings.TrimRight(before, " \t") != "" && !model.LegacyValidation.IsValidMetricName(name) {
		return "", nil, "invalid metric name"
	}
	slices.SortFunc(labels, func(x, y Label) int { return cmp.Compare(x.Name, y.Name) })
	return name, labels, ""
}
