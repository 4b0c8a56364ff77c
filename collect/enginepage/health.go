package enginepage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine"
)

// healthWithin bounds a request of /health, so that it hardly delays the next page.
const healthWithin = time.Second

// Health reads the health endpoint of one server, which answers 200 while the engine lives. It must not be
// used concurrently.
type Health struct {
	client *collect.Client
	path   string
	absent string // how a server without the endpoint answered, "" for others
}

// NewHealth returns a reader for the server of a client, which has the endpoint at a path ("/health").
func NewHealth(client *collect.Client, path string) *Health {
	return &Health{client: client, path: path}
}

// Read requests the endpoint once, unless an earlier request found that the server does not have it.
// An answer other than 200 or a server error leaves the state unknown, with the answer as the reason:
// proxies and other engines may give it.
func (h *Health) Read(ctx context.Context) engine.Health {
	if h.absent != "" {
		return engine.Health{Why: h.absent}
	}
	ctx, cancel := context.WithTimeout(ctx, healthWithin)
	defer cancel()
	_, err := h.client.Get(ctx, h.path, "*/*", nil)
	var status *collect.StatusError
	switch {
	case err == nil:
		return engine.Health{State: engine.HealthOK}
	case !errors.As(err, &status):
		return engine.Health{Why: h.path + " does not answer"}
	}
	why := fmt.Sprintf("%s answers %d", h.path, status.Code)
	switch {
	case status.Code == http.StatusNotFound, status.Code == http.StatusMethodNotAllowed, status.Code == http.StatusNotImplemented:
		h.absent = why
	case status.Code >= http.StatusInternalServerError:
		return engine.Health{State: engine.HealthFailed, Why: why}
	}
	return engine.Health{Why: why}
}
