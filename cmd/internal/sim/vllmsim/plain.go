package vllmsim

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// health answers GET /health: 200, or 503 if the engine is dead.
func (f *incarnation) health(w http.ResponseWriter, r *http.Request) *refusal {
	status := http.StatusServiceUnavailable
	_ = f.do(r.Context(), func(time.Duration) {
		if !f.m.Dead() {
			status = http.StatusOK
		}
	})
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(status)
	return nil
}

func (f *incarnation) showVersion(w http.ResponseWriter, _ *http.Request) *refusal {
	return writeJSON(w, map[string]string{"version": f.version})
}

// metricsType is the content type of vLLM 0.9 to 0.32, whichever was requested.
const metricsType = "text/plain; version=1.0.0; charset=utf-8"

// metrics answers GET /metrics.
func (f *incarnation) metrics(w http.ResponseWriter, r *http.Request) *refusal {
	var page []byte
	if !f.reached(r.Context(), func(now time.Duration) { page = f.m.Page(nil, now) }) {
		return nil
	}
	writeBody(w, http.StatusOK, metricsType, page)
	return nil
}

// models answers GET /v1/models: a card for each served name, and one for each
// adapter.
func (f *incarnation) models(w http.ResponseWriter, _ *http.Request) *refusal {
	s := f.settings
	created := time.Now().Unix()
	var cards [][]byte
	for _, name := range s.Served {
		cards = append(cards, f.card(name, created, s.ModelName, "", strconv.Itoa(s.MaxModelLen)))
	}
	for _, name := range s.LoRAModules {
		cards = append(cards, f.card(name, created, name, s.Served[0], "null"))
	}
	body := fmt.Appendf(nil, `{"object":"list","data":[%s]}`, bytes.Join(cards, []byte(",")))
	writeBody(w, http.StatusOK, "application/json", body)
	return nil
}

// card returns a model's card (serve/engine/protocol.py, ModelCard).
func (f *incarnation) card(id string, created int64, root, parent, length string) []byte {
	return fmt.Appendf(nil, `{"id":%s,"object":"model","created":%d,"owned_by":"vllm","root":%s,"parent":%s,"max_model_len":%s,`+
		`"permission":[{"id":"modelperm-%s","object":"model_permission","created":%[2]d,"allow_create_engine":false,`+
		`"allow_sampling":true,"allow_logprobs":true,"allow_search_indices":false,"allow_view":true,`+
		`"allow_fine_tuning":false,"organization":"*","group":null,"is_blocking":false}]}`,
		quote(id), created, quote(root), quoteOrNull(parent), length, f.requestID())
}
