package serve

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

// route is what answers at a path.
type route struct {
	methods []string
	handle  http.HandlerFunc
	counted bool // in the http_* families by this package
	local   bool // for this machine alone
}

// guarded are the beginnings of paths that want the API key
// (serve/middleware/authenticate.py).
var guarded = []string{"/v1", "/v2", "/inference", "/cohere"}

// routes is the whole server.
func (f *life) routes() http.Handler {
	get, post := []string{http.MethodGet}, []string{http.MethodPost}
	table := map[string]route{
		"/health":              {methods: get, handle: f.health},
		"/ping":                {methods: []string{http.MethodGet, http.MethodPost}, handle: f.health},
		"/version":             {methods: get, handle: f.showVersion},
		"/load":                {methods: get, handle: f.showLoad},
		"/metrics":             {methods: get, handle: f.metrics},
		"/v1/models":           {methods: get, handle: f.models, counted: true},
		"/v1/completions":      {methods: post, handle: f.completions},
		"/v1/chat/completions": {methods: post, handle: f.chat},
		"/tokenize":            {methods: post, handle: f.tokenize, counted: true},
		"/detokenize":          {methods: post, handle: f.detokenize, counted: true},
		"/sim/gpu":             {methods: get, handle: f.gpuPage},
		"/sim/state":           {methods: get, handle: f.state, local: true},
		"/sim/log":             {methods: get, handle: f.showLog, local: true},
		"/sim/fault":           {methods: post, handle: f.fault, local: true},
		"/sim/scale":           {methods: post, handle: f.scale, local: true},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Simulated", "1")
		if !f.authorized(r) {
			writeJSON(w, http.StatusUnauthorized, []byte(`{"error":"Unauthorized"}`))
			return
		}
		to, known := table[r.URL.Path]
		switch {
		case !known:
			f.count(w, r, "none", func(w http.ResponseWriter, _ *http.Request) {
				httpError(http.StatusNotFound, "Not Found").write(w)
			})
		case !slices.Contains(to.methods, r.Method):
			w.Header().Set("Allow", strings.Join(to.methods, ", "))
			httpError(http.StatusMethodNotAllowed, "Method Not Allowed").write(w)
		case to.local && !fromHere(r):
			httpError(http.StatusForbidden, "simulated server: "+r.URL.Path+" answers this machine alone").write(w)
		case to.counted:
			f.count(w, r, r.URL.Path, to.handle)
		default:
			to.handle(w, r)
		}
	})
}

// authorized checks the API key where there is one.
func (f *life) authorized(r *http.Request) bool {
	key := f.settings.APIKey
	isGuarded := slices.ContainsFunc(guarded, func(p string) bool { return strings.HasPrefix(r.URL.Path, p) })
	if key == "" || !isGuarded || r.Method == http.MethodOptions {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	want, got := sha256.Sum256([]byte(key)), sha256.Sum256([]byte(token))
	return strings.EqualFold(scheme, "bearer") && subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

// fromHere says whether a request came over loopback.
func fromHere(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}

// refuse answers a request that does not reach the server.
func (f *life) refuse(w http.ResponseWriter, r *http.Request, refused *refusal) {
	f.count(w, r, r.URL.Path, func(w http.ResponseWriter, _ *http.Request) { refused.write(w) })
}

// count tells the page of an answer that the server itself does not see. name is
// the handler's: the path, or what the instrumentator calls a path that is not
// there.
func (f *life) count(w http.ResponseWriter, r *http.Request, name string, handle http.HandlerFunc) {
	began := time.Now()
	seen := &answered{ResponseWriter: w, status: http.StatusOK}
	handle(seen, r)
	took := time.Since(began)
	// Counted even where the client went away meanwhile.
	_ = f.post(context.WithoutCancel(r.Context()), func(time.Duration) {
		f.m.HTTP(r.Method, name, seen.status, took, int(max(0, r.ContentLength)), seen.bytes)
	})
}

// answered notes what a handler answered.
type answered struct {
	http.ResponseWriter
	status int
	bytes  int
}

// WriteHeader implements [http.ResponseWriter].
func (a *answered) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (a *answered) Write(b []byte) (int, error) {
	n, err := a.ResponseWriter.Write(b)
	a.bytes += n
	return n, err
}

// Unwrap lets an [http.ResponseController] reach the connection.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }
