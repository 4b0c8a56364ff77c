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
	"sync/atomic"
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
	// Headers go with every request. NewClient refuses those that the client sets
	// itself.
	Headers http.Header
	// Timeouts bound requests that are examined; Connect bounds all.
	Timeouts Timeouts
	// Transport replaces the client's own connections.
	Transport http.RoundTripper
}

// Client sends completions to one server and times what comes back. It keeps
// as many connections open as there are requests in flight, and is safe for
// concurrent use.
type Client struct {
	base     *url.URL
	key      string
	headers  http.Header
	timeouts Timeouts
	// spoken is the dialect that the server was found to want.
	spoken atomic.Uint32
	http   http.Client
	model  string
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
	if err := checkHeaders(o.Headers, o.APIKey != ""); err != nil {
		return nil, err
	}
	if o.Timeouts.Connect <= 0 {
		o.Timeouts.Connect = dialTimeout
	}
	transport := o.Transport
	if transport == nil {
		transport = newTransport(o.TLS, o.Timeouts.Connect)
	}
	return &Client{
		base:     u,
		key:      o.APIKey,
		headers:  o.Headers.Clone(),
		timeouts: o.Timeouts,
		model:    o.Model,
		lock:     make(chan struct{}, 1),

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

func newTransport(config *tls.Config, connect time.Duration) *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: connect}).DialContext,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: connect,
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
		return "", fmt.Errorf("list models at %s: %w", at.Redacted(), c.readStatus(response))
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
	for name, values := range c.headers {
		request.Header[name] = values
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "text/event-stream")
		// llama.cpp's server promises to keep a connection and closes it after every
		// stream (b11549), so that the next request on it may meet the end. Present
		// and empty, this header is not sent and lets net/http send such a request
		// again on a new connection, as long as nothing of an answer has come.
		request.Header["Idempotency-Key"] = nil
	}
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	return request, nil
}

// readStatus turns an answer other than 200 into an error with the server's
// message, in the spellings that OpenAI-compatible servers use.
func (c *Client) readStatus(response *http.Response) *StatusError {
	if to, err := response.Location(); err == nil && response.StatusCode/100 == 3 {
		// Without what may be a secret: a user, a query.
		elsewhere := url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path}
		return &StatusError{Code: response.StatusCode, Message: "it redirects to " + oneLine(elsewhere.String()) + ", which is not followed: give that address if you trust it"}
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBytes))
	return &StatusError{Code: response.StatusCode, Message: serverMessage([]byte(c.hide(string(body))))}
}

// leastSecret is the length from which a header's value is hidden: a shorter one is no
// secret, and a part of ordinary words.
const leastSecret = 8

// hide takes the API key and the values of headers out of what a server said: some
// repeat what they refuse.
func (c *Client) hide(words string) string {
	secrets := []string{c.key}
	for _, values := range c.headers {
		for _, value := range values {
			secrets = append(append(secrets, value), strings.Fields(value)...)
		}
	}
	for _, secret := range secrets {
		if len(secret) >= leastSecret {
			words = withoutEnd(strings.ReplaceAll(words, secret, "[redacted]"), secret)
		}
	}
	return words
}

// withoutEnd takes out the begin of a secret that words were cut in.
func withoutEnd(words, secret string) string {
	head, cut := strings.CutSuffix(words, cutMark)
	for n := len(secret) - 1; cut && n >= leastSecret; n-- {
		if kept, ends := strings.CutSuffix(head, secret[:n]); ends {
			return kept + cutMark
		}
	}
	return words
}
