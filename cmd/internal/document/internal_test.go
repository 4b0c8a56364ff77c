package document

import "github.com/rooftop-dev/rooftop/engine/verdict"

// Statistical is a verdict as documents have it, nil where none was made.
func Statistical(r *verdict.Result) any {
	if r == nil {
		return nil
	}
	return newStatistical(r)
}
