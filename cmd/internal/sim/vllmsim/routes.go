package vllmsim

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// route is the handler of a path.
type route struct {
	methods []string
	handle  func(http.ResponseWriter, *http.Request) *refusal
	submits bool // the server counts answers in http_requests, this package refusals
	local   bool // only for clients on this machine
}

// guarded lists the prefixes of paths that require the API key (serve/middleware/authenticate.py).
var guarded = []string{"/v1", "/v2", "/inference", "/cohere"}

// routes returns the handler of the whole server.
func (f *incarnation) routes() http.Handler {
	get, post := []string{http.MethodGet}, []string{http.MethodPost}
	table := map[string]route{
		"/health":              {methods: get, handle: f.health},
		"/ping":                {methods: []string{http.MethodGet, http.MethodPost}, handle: f.health},
		"/version":             {methods: get, handle: f.showVersion},
		"/metrics":             {methods: get, handle: f.metrics},
		"/v1/models":           {methods: get, handle: f.models},
		"/v1/completions":      {methods: post, handle: f.completions, submits: true},
		"/v1/chat/completions": {methods: post, handle: f.chat, submits: true},
		"/tokenize":            {methods: post, handle: f.tokenize},
		"/sim/gpu":             {methods: get, handle: f.gpuPage},
		"/sim/state":           {methods: get, handle: f.state, local: true},
		"/sim/fault":           {methods: post, handle: f.fault, local: true},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Simulated", "1")
		if !f.authorized(r) {
			writeBody(w, http.StatusUnauthorized, "application/json", []byte(`{"error":"Unauthorized"}`))
			return
		}
		to, known := table[r.URL.Path]
		switch {
		case !known:
			refuse(w, httpError(http.StatusNotFound, "Not Found"))
		case !slices.Contains(to.methods, r.Method):
			w.Header().Set("Allow", strings.Join(to.methods, ", "))
			refuse(w, httpError(http.StatusMethodNotAllowed, "Method Not Allowed"))
		case to.local && !fromHere(r):
			refuse(w, httpError(http.StatusForbidden, "simulated server: "+r.URL.Path+" answers this machine alone"))
		default:
			refused := to.handle(w, r)
			if refused == nil {
				return
			}
			refuse(w, refused)
			if to.submits {
				// Counted even if the client went away meanwhile.
				_ = f.post(context.WithoutCancel(r.Context()), func(time.Duration) { f.m.HTTP(r.URL.Path, refused.Status) })
			}
		}
	})
}

// authorized reports whether a request has the API key; true if the server has none.
func (f *incarnation) authorized(r *http.Request) bool {
	key := f.settings.APIKey
	isGuarded := slices.ContainsFunc(guarded, func(p string) bool { return strings.HasPrefix(r.URL.Path, p) })
	if key == "" || !isGuarded || r.Method == http.MethodOptions {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	want, got := sha256.Sum256([]byte(key)), sha256.Sum256([]byte(token))
	return strings.EqualFold(scheme, "bearer") && subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

// fromHere reports whether a request comes over loopback.
func fromHere(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}
