package document

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// maxRows bounds the samples of a document, separately for processes and for devices: more than two hours
// of sixty processes at 50 ms. Runs of samples take a few bytes, so the size of a file does not bound the
// memory needed.
const maxRows = 10_000_000

// moments binds a dense column: a duration for each sample. The first column that is read creates the
// samples.
func moments[S any](list *[]S, field func(*S) *time.Duration) codec {
	return codec{func() any {
		out := make([]float64, len(*list))
		for i := range out {
			out[i] = field(&(*list)[i]).Seconds()
		}
		return out
	}, decoded(func(values []moment) error {
		if len(values) > maxRows {
			return fmt.Errorf("%d samples, more than %d", len(values), maxRows)
		}
		if *list == nil && len(values) > 0 {
			*list = make([]S, len(values))
		}
		if len(values) != len(*list) {
			return fmt.Errorf("%d values for %d samples", len(values), len(*list))
		}
		for i, v := range values {
			*field(&(*list)[i]) = time.Duration(v)
		}
		return nil
	})}
}

// flags binds a column of booleans, encoded as the first and the last sample of each run of true.
func flags[S any](list *[]S, field func(*S) *bool) codec {
	return codec{func() any {
		var r sampleRuns
		for i := range *list {
			if *field(&(*list)[i]) {
				r.add(i)
			}
		}
		return r
	}, decoded(func(runs sampleRuns) error {
		samples, err := runs.samples(len(*list))
		for _, i := range samples {
			*field(&(*list)[i]) = true
		}
		return err
	})}
}

type sampleText struct {
	Sample int    `json:"sample"`
	Error  string `json:"error"`
}

// sparse binds a column of texts that few samples have.
func sparse[S any](list *[]S, field func(*S) *string) codec {
	return codec{func() any {
		var out []sampleText
		for i := range *list {
			if text := *field(&(*list)[i]); text != "" {
				out = append(out, sampleText{i, text})
			}
		}
		return out
	}, decoded(func(texts []sampleText) error {
		for _, t := range texts {
			if t.Sample < 0 || t.Sample >= len(*list) {
				return fmt.Errorf("sample %d of %d", t.Sample, len(*list))
			}
			*field(&(*list)[t.Sample]) = t.Error
		}
		return nil
	})}
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

// samples returns the samples of all runs. They must ascend and be below n.
func (r sampleRuns) samples(n int) ([]int, error) {
	var samples []int
	last := -1
	for _, run := range r {
		if run[0] <= last || run[1] < run[0] || run[1] >= n {
			return nil, fmt.Errorf("runs of samples do not rise within %d", n)
		}
		for i := run[0]; i <= run[1]; i++ {
			samples = append(samples, i)
		}
		last = run[1]
	}
	return samples, nil
}

// row is the values of one subject, such as a process, in one sample.
type row[R any] struct {
	sample int
	value  *R
}

// table is the rows of one subject, encoded as columns.
type table[R any] []row[R]

// boundRows rejects a list of subjects that are present in more than maxRows of n samples in all, before any
// row is created. Presences that cannot be read are left to [presence].
func boundRows(raw []byte, n int) error {
	var list []struct {
		Present sampleRuns `json:"present"`
	}
	_ = json.Unmarshal(raw, &list)
	total := 0
	for _, subject := range list {
		for _, run := range subject.Present {
			if run[0] >= 0 && run[0] <= run[1] && run[1] < n {
				total += run[1] - run[0] + 1
			}
			if total > maxRows {
				return fmt.Errorf("more than %d samples", maxRows)
			}
		}
	}
	return nil
}

// presence binds the samples for which there are rows. Reading creates the rows, within n samples.
func presence[R any](rows *table[R], n int) codec {
	return codec{func() any {
		r := sampleRuns{}
		for _, x := range *rows {
			r.add(x.sample)
		}
		return r
	}, decoded(func(runs sampleRuns) error {
		samples, err := runs.samples(n)
		if err != nil {
			return err
		}
		values := make([]R, len(samples))
		*rows = make(table[R], len(samples))
		for i, sample := range samples {
			(*rows)[i] = row[R]{sample, &values[i]}
		}
		return nil
	})}
}

// steps encodes a column with many repeated values: each value applies from its position until the next.
type steps[T any] struct {
	From  []int `json:"from"`
	Value []T   `json:"value"`
}

// column binds a column of rows.
func column[R any, T comparable](rows table[R], field func(*R) *T) codec {
	return codec{func() any { return stepsOf(rows, field, nil) }, decoded(func(s steps[T]) error { return fill(s, rows, field) })}
}

// knownSteps returns the steps of a column from its first present value.
func knownSteps[R any](rows table[R], field func(*R) *stat.Opt) steps[stat.Opt] {
	return stepsOf(rows, field, func(o stat.Opt) bool { return o.Finite().OK })
}

// stepsOf returns the steps of a column from the first value for which begins is true; nil begins at the
// first row.
func stepsOf[R any, T comparable](rows table[R], field func(*R) *T, begins func(T) bool) steps[T] {
	s := steps[T]{From: []int{}, Value: []T{}}
	for _, r := range rows {
		v := *field(r.value)
		n := len(s.Value)
		if n == 0 && begins != nil && !begins(v) || n > 0 && s.Value[n-1] == v {
			continue
		}
		s.From, s.Value = append(s.From, r.sample), append(s.Value, v)
	}
	return s
}

// fill sets a field of rows from the steps of its column.
func fill[R any, T comparable](s steps[T], rows table[R], field func(*R) *T) error {
	if len(s.From) != len(s.Value) {
		return fmt.Errorf("%d places for %d values", len(s.From), len(s.Value))
	}
	last := -1
	for _, place := range s.From {
		if place <= last || len(rows) > 0 && place > rows[len(rows)-1].sample {
			return fmt.Errorf("places of a column do not rise within its samples")
		}
		last = place
	}
	next := 0
	for _, r := range rows {
		for next < len(s.From) && s.From[next] <= r.sample {
			next++
		}
		if next > 0 {
			*field(r.value) = s.Value[next-1]
		}
	}
	return nil
}
