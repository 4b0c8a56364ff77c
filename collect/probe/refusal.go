package probe

import (
	"errors"
	"net/http"
)

// Refusal is what a server refuses permanently, so that repeating the request would not help.
type Refusal int

// Refusals.
const (
	NotRefused     Refusal = iota // or refused only for now
	RequestRefused                // this request, such as one that is too long
	CallerRefused                 // the key, the model or the address, and so all requests
)

// RefusalOf returns the refusal that the error of a request means.
func RefusalOf(err error) Refusal {
	var status *StatusError
	if !errors.As(err, &status) {
		return NotRefused
	}
	switch status.Code {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return RequestRefused
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return CallerRefused
	}
	return NotRefused
}
