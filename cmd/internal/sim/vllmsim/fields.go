package vllmsim

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxBody bounds a request, in bytes. vLLM accepts any size; a prompt of a million tokens is about 8 MiB.
const maxBody = 32 << 20

// bodyTimeout bounds the time in which a request must arrive.
const bodyTimeout = 30 * time.Second

// fields holds the members of a request's object, by their exact names. Unknown members are ignored, as in
// vLLM.
type fields map[string]json.RawMessage

// readFields reads a request.
func readFields(w http.ResponseWriter, r *http.Request) (fields, *refusal) {
	kind, _, _ := strings.Cut(strings.ToLower(r.Header.Get("Content-Type")), ";")
	if strings.TrimSpace(kind) != "application/json" {
		return nil, invalid("", "Unsupported Media Type: Only 'application/json' is allowed")
	}
	// The deadline closes connections of clients that stop sending; it is removed once the body has
	// arrived.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	_ = control.SetReadDeadline(time.Time{})
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, httpError(http.StatusRequestEntityTooLarge, "simulated server: the request is larger than 32 MiB")
	case err != nil:
		return nil, invalid("body", "the request's body did not arrive: "+err.Error())
	case len(bytes.TrimSpace(body)) == 0:
		return nil, invalid("body", "Field required")
	}
	var f fields
	if err := json.Unmarshal(body, &f); err != nil {
		return nil, invalid("body", "JSON decode error: "+err.Error())
	}
	if f == nil {
		return nil, invalid("body", "Input should be a valid dictionary")
	}
	return f, nil
}

// invalid returns vLLM's answer to a request that does not validate
// (serve/exception_handling/handlers/validation.py).
func invalid(param, message string) *refusal {
	return &refusal{Status: http.StatusBadRequest, Type: "Bad Request", Param: param, Message: "1 validation error:\n  " + message}
}

// absent reports whether a member is missing or null.
func (f fields) absent(name string) bool {
	raw, ok := f[name]
	return !ok || string(raw) == "null"
}

// read decodes a member into a *string, *int, *float64 or *bool, which keeps its value if the
// member is absent.
func (f fields) read(name string, into any) *refusal {
	if f.absent(name) {
		return nil
	}
	kind, err := "", error(nil)
	switch into := into.(type) {
	case *int: // as pydantic does, 3.0 is a whole number
		var v float64
		kind, err = "integer", json.Unmarshal(f[name], &v)
		if v != math.Trunc(v) || math.Abs(v) > 1<<53 {
			err = strconv.ErrRange
		}
		*into = int(v)
	case *float64:
		kind, err = "number", json.Unmarshal(f[name], into)
	case *bool:
		kind, err = "boolean", json.Unmarshal(f[name], into)
	case *string:
		kind, err = "string", json.Unmarshal(f[name], into)
	}
	if err != nil {
		return invalid("body."+name, name+": Input should be a valid "+kind)
	}
	return nil
}

// empty reports whether a member has no effect: it is absent, false, "", [], {} or 0.
func (f fields) empty(name string) bool {
	switch string(bytes.TrimSpace(f[name])) {
	case "", "null", "false", `""`, "[]", "{}", "0":
		return true
	}
	return false
}
