// Package collect holds what every source shares: the answer it gives (a
// value, no data, or a failure), and an HTTP client that disturbs nothing.
//
// Sources never import each other. They return plain values; who polls them,
// and when, is the session's business.
package collect

import "errors"

// ErrNoData says that a source works and has nothing to tell: a state to show,
// not a failure. Wrap it with what is missing and the one thing to do about it.
var ErrNoData = errors.New("no data")
