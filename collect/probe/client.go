package probe

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	dialTimeout = 5 * time.Second
	// uvicorn closes a connection that was idle for 5 s; letting go earlier
	// avoids sending a request into a connection that is just being closed.
	idleConnTimeout = 3 * time.Second
	maxIdleConns    = 1 << 14
	// closeGrace is how long a finished stream may take to end its response, so
	// that the connection can be used again.
	closeGrace = time.Second

	// askTimeout bounds what is asked beside the load: a server that is busy with
	// completions still lists its models.
	askTimeout = 10 * time.Second

	maxModelsBytes = 4 << 20
	maxErrorBytes  = 64 << 10
)

// Options of a Client. The zero value is usable.
type Options struct {
	Model  string // served model name; "" takes the first of /v1/models
	APIKey string // sent as a bearer token; "" sends none
	// TLS is used for https; nil is the system's roots, verified.
	TLS *tls.Config
	// Transport replaces the client's own connections.
	Transport http.RoundTripper
}

// Client sends completions to one server and times what comes back. It keeps
// as many connections open as there are requests in flight, and is safe for
// concurrent use.
type Client struct {
	base  *url.URL
	key   string
	http  http.Client
	model string
	// Where requests go.
	models, completions, chats, tokenize *url.URL
	readers                              sync.Pool // of *eventReader
	// lock guards model. It is a channel so that waiting for it ends with the
	// context.
	lock chan struct{}
}

// NewClient returns a client of the server at base: host:port, or a URL with
// or without a trailing /v1 or /metrics. It contacts nothing.
func NewClient(base string, o Options) (*Client, error) {
	u, err := parseBase(base)
	if err != nil {
		return nil, err
	}
	transport := o.Transport
	if transport == nil {
		transport = newTransport(o.TLS)
	}
	return &Client{
		base:  u,
		key:   o.APIKey,
		model: o.Model,
		lock:  make(chan struct{}, 1),

		models:      u.JoinPath("v1", "models"),
		completions: u.JoinPath("v1", "completions"),
		chats:       u.JoinPath("v1", "chat", "completions"),
		tokenize:    u.JoinPath("tokenize"),
		http: http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Close gives up idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func newTransport(config *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: dialTimeout,
		IdleConnTimeout:     idleConnTimeout,
		MaxIdleConns:        maxIdleConns,
		MaxIdleConnsPerHost: maxIdleConns,
		// A compressed stream arrives in lumps, which would be measured as latency.
		DisableCompression: true,
	}
}

func parseBase(base string) (*url.URL, error) {
	text := base
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		// The parser's error repeats the whole text, password and all.
		return nil, errors.New("server address is not a URL: give host:port or http://host:port")
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("server address %q: give host:port or http://host:port", u.Redacted())
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	for _, suffix := range []string{"/v1", "/metrics"} {
		u.Path = strings.TrimSuffix(u.Path, suffix)
	}
	u.RawQuery, u.Fragment = "", ""
	return u, nil
}

// StatusError is an answer other than 200.
type StatusError struct {
	Code    int    // HTTP status
	Message string // what the server said, cut to one line
}

// Error names the status and the server's own words.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("status %d %s", e.Code, http.StatusText(e.Code))
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// errSlow says that askTimeout has passed.
var errSlow = fmt.Errorf("no answer in %v", askTimeout)

// promptly calls ask with a context that ends after askTimeout, and returns
// errSlow where that ended it.
func promptly(ctx context.Context, ask func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	err := ask(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return errSlow
	}
	return err
}

// Model returns the name that requests carry: the one given, else the first
// that the server lists, asked for once and for at most ten seconds.
func (c *Client) Model(ctx context.Context) (string, error) {
	select {
	case c.lock <- struct{}{}:
		defer func() { <-c.lock }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if c.model != "" {
		return c.model, nil
	}
	var model string
	err := promptly(ctx, func(ctx context.Context) (err error) {
		model, err = c.firstModel(ctx)
		return err
	})
	switch {
	case errors.Is(err, errSlow):
		return "", fmt.Errorf("list models at %s: %w", c.models.Redacted(), err)
	case err != nil:
		return "", err
	}
	c.model = model
	return model, nil
}

func (c *Client) firstModel(ctx context.Context) (string, error) {
	at := c.models
	request, err := c.request(ctx, http.MethodGet, at, nil)
	if err != nil {
		return "", err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("list models at %s: %w", at.Redacted(), readStatus(response))
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxModelsBytes))
	if err != nil {
		return "", fmt.Errorf("list models at %s: %w", at.Redacted(), err)
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return "", fmt.Errorf("list models at %s: not an OpenAI-compatible answer: %w", at.Redacted(), err)
	}
	if len(list.Data) == 0 || list.Data[0].ID == "" {
		return "", fmt.Errorf("list models at %s: the server names none; give the model's name", at.Redacted())
	}
	return list.Data[0].ID, nil
}

func (c *Client) request(ctx context.Context, method string, at *url.URL, body []byte) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "text/event-stream")
	}
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	return request, nil
}

// readStatus turns an answer other than 200 into an error with the server's
// message, in the spellings that OpenAI-compatible servers use.
func readStatus(response *http.Response) *StatusError {
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBytes))
	return &StatusError{Code: response.StatusCode, Message: serverMessage(body)}
}
