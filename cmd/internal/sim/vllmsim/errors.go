package vllmsim

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

// refusal is an answer other than 200, in the format of vLLM's errors (serve/engine/protocol.py,
// ErrorResponse).
type refusal = Refusal

// badRequest returns the refusal of an invalid request.
func badRequest(param, format string, args ...any) *refusal {
	return &refusal{Status: http.StatusBadRequest, Type: "BadRequestError", Param: param, Message: fmt.Sprintf(format, args...)}
}

// unsupported returns the refusal of a feature that vLLM has and the simulator does not: it is never
// approximated.
func unsupported(param, why string) *refusal {
	return badRequest(param, "simulated server: %s is not simulated: %s", param, why)
}

func noModel(name, valid string) *refusal {
	return &refusal{Status: http.StatusNotFound, Type: "NotFoundError", Param: "model", Message: "The model `" + name + "` does not exist. Valid aliases: " + valid + "."}
}

// httpError returns the refusal for FastAPI's own errors: an unknown path, or a method that a path does not
// accept.
func httpError(status int, detail string) *refusal {
	return &refusal{Status: status, Type: http.StatusText(status), Message: detail}
}

// errorBody returns a refusal as JSON.
func errorBody(r *refusal) []byte {
	return fmt.Appendf(nil, `{"error":{"message":%s,"type":%s,"param":%s,"code":%d}}`,
		quote(r.Message), quote(r.Type), quoteOrNull(r.Param), r.Status)
}

// refuse answers with a refusal.
func refuse(w http.ResponseWriter, r *refusal) {
	writeBody(w, r.Status, "application/json", errorBody(r))
}

// refusalOf returns why the server refused or failed a request; nil is a failure without a reason.
func refusalOf(err error) *refusal {
	if r := (*refusal)(nil); errors.As(err, &r) && r.Status != 0 {
		return r
	}
	message := "Internal server error"
	if err != nil {
		message = err.Error()
	}
	return &refusal{Status: http.StatusInternalServerError, Type: "InternalServerError", Message: message}
}

// writeJSON answers with a value as JSON.
func writeJSON(w http.ResponseWriter, v any) *refusal {
	body, err := json.Marshal(v)
	if err != nil {
		return httpError(http.StatusInternalServerError, err.Error())
	}
	writeBody(w, http.StatusOK, "application/json", body)
	return nil
}

func writeBody(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// quote returns a string as JSON. It copies generated text, which consists of letters and blanks, without
// escaping.
func quote(s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // of a string it cannot fail
			return quoted
		}
	}
	return []byte(`"` + s + `"`)
}

func quoteOrNull(s string) []byte {
	if s == "" {
		return []byte("null")
	}
	return quote(s)
}
