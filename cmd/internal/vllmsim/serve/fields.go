package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"time"
)

// maxBody bounds a request: vLLM itself takes any size, and a prompt of a million
// tokens is about 8 MiB.
const maxBody = 32 << 20

// bodyTimeout is how long a request may take to arrive.
const bodyTimeout = 30 * time.Second

// fields are the members of a request's object, by their exact names. Members
// that nothing here knows are ignored, as vLLM does.
type fields map[string]json.RawMessage

// readFields reads a request.
func readFields(w http.ResponseWriter, r *http.Request) (fields, *refusal) {
	kind, _, _ := strings.Cut(strings.ToLower(r.Header.Get("Content-Type")), ";")
	if strings.TrimSpace(kind) != "application/json" {
		return nil, invalid("", "Unsupported Media Type: Only 'application/json' is allowed")
	}
	// A client that sends nothing more does not hold a connection for ever; once
	// the body is here, only the end of the connection is waited for.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	_ = control.SetReadDeadline(time.Time{})
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &refusal{http.StatusRequestEntityTooLarge, "Request Entity Too Large", "", "simulated server: the request is larger than 32 MiB"}
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

// invalid is what vLLM answers to a request that does not validate
// (serve/exception_handling/handlers/validation.py).
func invalid(param, message string) *refusal {
	return &refusal{http.StatusBadRequest, "Bad Request", param, "1 validation error:\n  " + message}
}

// absent says that a member is missing or null.
func (f fields) absent(name string) bool {
	raw, ok := f[name]
	return !ok || string(raw) == "null"
}

// text returns a member that is a string, "" where absent.
func (f fields) text(name string) (string, *refusal) {
	var s string
	if !f.absent(name) && json.Unmarshal(f[name], &s) != nil {
		return "", invalid("body."+name, name+": Input should be a valid string")
	}
	return s, nil
}

// integer returns a member that is a whole number.
func (f fields) integer(name string, absent int) (int, *refusal) {
	v, refused := f.number(name, float64(absent))
	if refused != nil || v != math.Trunc(v) || math.Abs(v) > 1<<53 {
		return 0, invalid("body."+name, name+": Input should be a valid integer")
	}
	return int(v), nil
}

func (f fields) number(name string, absent float64) (float64, *refusal) {
	if f.absent(name) {
		return absent, nil
	}
	var v float64
	if json.Unmarshal(f[name], &v) != nil {
		return 0, invalid("body."+name, name+": Input should be a valid number")
	}
	return v, nil
}

// boolean returns a member that is true or false.
func (f fields) boolean(name string) (bool, *refusal) {
	var v bool
	if !f.absent(name) && json.Unmarshal(f[name], &v) != nil {
		return false, invalid("body."+name, name+": Input should be a valid boolean")
	}
	return v, nil
}

// empty says that a member asks for nothing: absent, false, "", [], {} or 0.
func (f fields) empty(name string) bool {
	switch string(bytes.TrimSpace(f[name])) {
	case "", "null", "false", `""`, "[]", "{}", "0":
		return true
	}
	return false
}
