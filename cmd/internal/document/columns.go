package document

import "github.com/rooftop-dev/rooftop/engine/stat"

// each returns f of each element of a list.
func each[S, T any](list []S, f func(*S) T) []T {
	out := make([]T, len(list))
	for i := range list {
		out[i] = f(&list[i])
	}
	return out
}

// flags returns the first and the last sample of each run for which a boolean is true.
func flags[S any](list []S, field func(*S) bool) sampleRuns {
	var r sampleRuns
	for i := range list {
		if field(&list[i]) {
			r.add(i)
		}
	}
	return r
}

type sampleText struct {
	Sample int    `json:"sample"`
	Error  string `json:"error"`
}

// sparse returns a column of texts that few samples have.
func sparse[S any](list []S, field func(*S) string) []sampleText {
	var out []sampleText
	for i := range list {
		if text := field(&list[i]); text != "" {
			out = append(out, sampleText{i, text})
		}
	}
	return out
}

// sampleRuns are the first and the last sample of each run.
type sampleRuns [][2]int

// add appends sample i, which must be after the samples added before.
func (r *sampleRuns) add(i int) {
	if n := len(*r); n > 0 && (*r)[n-1][1] == i-1 {
		(*r)[n-1][1] = i
		return
	}
	*r = append(*r, [2]int{i, i})
}

// row is the values of one subject, such as a process, in one sample.
type row[R any] struct {
	sample int
	value  *R
}

// table is the rows of one subject, encoded as columns.
type table[R any] []row[R]

// presence returns the samples for which there are rows.
func presence[R any](rows table[R]) sampleRuns {
	r := sampleRuns{}
	for _, x := range rows {
		r.add(x.sample)
	}
	return r
}

// steps encodes a column with many repeated values: each value applies from its position until the next.
type steps[T any] struct {
	From  []int `json:"from"`
	Value []T   `json:"value"`
}

// column returns a column of rows.
func column[R any, T comparable](rows table[R], field func(*R) T) steps[T] {
	return stepsOf(rows, field, nil)
}

// knownSteps returns the steps of a column from its first present value.
func knownSteps[R any](rows table[R], field func(*R) stat.Opt) steps[stat.Opt] {
	return stepsOf(rows, field, func(o stat.Opt) bool { return o.Finite().OK })
}

// stepsOf returns the steps of a column from the first value for which begins is true; nil begins at the
// first row.
func stepsOf[R any, T comparable](rows table[R], field func(*R) T, begins func(T) bool) steps[T] {
	s := steps[T]{From: []int{}, Value: []T{}}
	for _, r := range rows {
		v := field(r.value)
		n := len(s.Value)
		if n == 0 && begins != nil && !begins(v) || n > 0 && s.Value[n-1] == v {
			continue
		}
		s.From, s.Value = append(s.From, r.sample), append(s.Value, v)
	}
	return s
}
