// Package collect has what all data sources share: an error for a source without data, an HTTP client that does
// not disturb the server, and the parser of Prometheus exposition text.
//
// A page is parsed completely or not at all: a truncated or malformed page is an error and yields no values. The
// parser goes by the content, never by the declared type.
//
// Sources never import each other. They return plain values; the session decides which of them to poll, and
// when.
package collect

import "errors"

// ErrNoData reports that a source works but has no data: a state to show, not a failure. Wrap it
// with what is missing and the next step.
var ErrNoData = errors.New("no data")
