package serve

import (
	"bytes"
	"net/http"
	"strconv"
	"time"
)

// health answers GET /health: it is refused before the server is up, and says
// so once the engine is dead.
func (f *life) health(w http.ResponseWriter, r *http.Request) {
	status := http.StatusServiceUnavailable
	_ = f.do(r.Context(), func(time.Duration) {
		if !f.m.Dead() {
			status = http.StatusOK
		}
	})
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(status)
}

func (f *life) showVersion(w http.ResponseWriter, _ *http.Request) {
	b := append([]byte(nil), `{"version":`...)
	b = appendJSON(b, f.version)
	writeJSON(w, http.StatusOK, append(b, '}'))
}

// showLoad answers GET /load: 0 for ever without --enable-server-load-tracking.
func (f *life) showLoad(w http.ResponseWriter, _ *http.Request) {
	n := int64(0)
	if f.trackLoad {
		n = f.inFlight.Load()
	}
	writeJSON(w, http.StatusOK, []byte(`{"server_load":`+strconv.FormatInt(n, 10)+`}`))
}

// metricsType is what vLLM 0.9 to 0.32 answer with, whatever was asked for.
const metricsType = "text/plain; version=1.0.0; charset=utf-8"

// metrics answers GET /metrics.
func (f *life) metrics(w http.ResponseWriter, r *http.Request) {
	var page []byte
	if err := f.do(r.Context(), func(now time.Duration) { page = f.m.Page(nil, now) }); err != nil {
		return
	}
	page = rescaled(page, f.settings.Scale, f.clock.rate())
	w.Header().Set("Content-Type", metricsType)
	w.Header().Set("Content-Length", strconv.Itoa(len(page)))
	_, _ = w.Write(page)
}

// rescaled writes the present scale into sim_info, where it was changed since
// the start: a reader's rates by the wall clock are as many times too high.
func rescaled(page []byte, start, now float64) []byte {
	if start == now {
		return page
	}
	label := func(v float64) []byte {
		return append(strconv.AppendFloat([]byte(`,time_scale="`), v, 'g', -1, 64), '"')
	}
	return bytes.Replace(page, label(start), label(now), 1)
}

// models answers GET /v1/models: a card for each served name, and one for each
// adapter.
func (f *life) models(w http.ResponseWriter, _ *http.Request) {
	s := f.settings
	created := time.Now().Unix()
	b := append([]byte(nil), `{"object":"list","data":[`...)
	for i, name := range s.Served {
		if i > 0 {
			b = append(b, ',')
		}
		b = f.appendCard(b, name, created, s.ModelName, "", s.MaxModelLen)
	}
	for _, name := range s.LoRAModules {
		b = append(b, ',')
		b = f.appendCard(b, name, created, name, s.Served[0], 0)
	}
	writeJSON(w, http.StatusOK, append(b, "]}"...))
}

// appendCard appends a model's card (serve/engine/protocol.py, ModelCard).
func (f *life) appendCard(b []byte, id string, created int64, root, parent string, length int) []byte {
	b = append(b, `{"id":`...)
	b = appendJSON(b, id)
	b = append(b, `,"object":"model","created":`...)
	b = strconv.AppendInt(b, created, 10)
	b = append(b, `,"owned_by":"vllm","root":`...)
	b = appendJSON(b, root)
	b = append(b, `,"parent":`...)
	if parent == "" {
		b = append(b, "null"...)
	} else {
		b = appendJSON(b, parent)
	}
	b = append(b, `,"max_model_len":`...)
	if length == 0 {
		b = append(b, "null"...)
	} else {
		b = appendInt(b, length)
	}
	b = append(b, `,"permission":[{"id":`...)
	b = appendJSON(b, "modelperm-"+f.requestID())
	b = append(b, `,"object":"model_permission","created":`...)
	b = strconv.AppendInt(b, created, 10)
	return append(b, `,"allow_create_engine":false,"allow_sampling":true,"allow_logprobs":true,"allow_search_indices":false,"allow_view":true,"allow_fine_tuning":false,"organization":"*","group":null,"is_blocking":false}]}`...)
}
