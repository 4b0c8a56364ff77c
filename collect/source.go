// Package collect has what all data sources share: an error for a source without data, and an HTTP
// client that does not disturb the server.
//
// Sources never import each other. They return plain values; the session decides which of them to
// poll, and when.
package collect

import "errors"

// ErrNoData reports that a source works but has no data: a state to show, not a failure. Wrap it
// with what is missing and the next step.
var ErrNoData = errors.New("no data")
