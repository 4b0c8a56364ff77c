package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// refusal is an answer other than 200, in the format of vLLM's errors (serve/engine/protocol.py,
// ErrorResponse).
type refusal struct {
	status  int
	kind    string // type
	param   string // "" is null
	message string
}

func (r *refusal) Error() string { return r.message }

// badRequest returns the refusal of an invalid request.
func badRequest(param, message string) *refusal {
	return &refusal{http.StatusBadRequest, "BadRequestError", param, message}
}

// unsupported returns the refusal of a feature that vLLM has and the simulator does not: it is never
// approximated.
func unsupported(param, why string) *refusal {
	return badRequest(param, "simulated server: "+param+" is not simulated: "+why)
}

func noModel(name, valid string) *refusal {
	return &refusal{http.StatusNotFound, "NotFoundError", "model", "The model `" + name + "` does not exist. Valid aliases: " + valid + "."}
}

// httpError returns the refusal for FastAPI's own errors: an unknown path, or a method that a path does not
// accept.
func httpError(status int, detail string) *refusal {
	return &refusal{status, http.StatusText(status), "", detail}
}

// body returns the error as JSON.
func (r *refusal) body() []byte {
	return fmt.Appendf(nil, `{"error":{"message":%s,"type":%s,"param":%s,"code":%d}}`,
		quote(r.message), quote(r.kind), quoteOrNull(r.param), r.status)
}

func (r *refusal) write(w http.ResponseWriter) { writeBody(w, r.status, "application/json", r.body()) }

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
