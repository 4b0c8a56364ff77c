package serve

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// refusal is an answer other than 200, in the shape of vLLM's errors
// (serve/engine/protocol.py, ErrorResponse).
type refusal struct {
	status  int
	kind    string // type
	param   string // "" is null
	message string
}

func (r *refusal) Error() string { return r.message }

// badRequest refuses what a client asked for.
func badRequest(param, message string) *refusal {
	return &refusal{http.StatusBadRequest, "BadRequestError", param, message}
}

// unsupported refuses what vLLM would do and the simulator cannot: it is named,
// never approximated.
func unsupported(param, why string) *refusal {
	return badRequest(param, "simulated server: "+param+" is not simulated: "+why)
}

func noModel(name, valid string) *refusal {
	return &refusal{http.StatusNotFound, "NotFoundError", "model", "The model `" + name + "` does not exist. Valid aliases: " + valid + "."}
}

// httpError is what FastAPI's own errors become: an unknown path, a method that
// a path does not take.
func httpError(status int, detail string) *refusal {
	return &refusal{status, http.StatusText(status), "", detail}
}

// body is the error as JSON.
func (r *refusal) body() []byte {
	b := append([]byte(nil), `{"error":{"message":`...)
	b = appendJSON(b, r.message)
	b = append(b, `,"type":`...)
	b = appendJSON(b, r.kind)
	b = append(b, `,"param":`...)
	if r.param == "" {
		b = append(b, "null"...)
	} else {
		b = appendJSON(b, r.param)
	}
	b = append(b, `,"code":`...)
	b = strconv.AppendInt(b, int64(r.status), 10)
	return append(b, "}}"...)
}

func (r *refusal) write(w http.ResponseWriter) {
	writeJSON(w, r.status, r.body())
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// appendJSON appends a string as JSON: text of letters, which is what is
// generated, goes in as it is.
func appendJSON(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // of a string it cannot fail
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
