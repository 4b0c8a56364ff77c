package probe

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/rooftop-dev/rooftop/collect"
)

const (
	dialTimeout = 5 * time.Second
	// uvicorn closes a connection after 5 s without a request. A shorter timeout avoids sending a
	// request on a connection that is being closed.
	idleConnTimeout = 3 * time.Second
	maxIdleConns    = 1 << 14
	// closeGrace is how long a finished stream may take to end its response, so that the connection
	// can be used again.
	closeGrace = time.Second

	// askTimeout limits requests that are not load: a server busy with completions still lists its
	// models.
	askTimeout = 10 * time.Second

	// maxAnswerBytes limits a response in one piece: 32 tokens with log probabilities have a few
	// KB, a gateway's list of models a few hundred.
	maxAnswerBytes = 4 << 20
	maxErrorBytes  = 64 << 10
)

// Endpoints below the address of a server.
const (
	modelsPath      = "/v1/models"
	completionsPath = "/v1/completions"
	chatPath        = "/v1/chat/completions"
	tokenizePath    = "/tokenize"
)

// Options configure a Client. The zero value is usable.
type Options struct {
	Model  string // served model name; "" takes the first of /v1/models
	APIKey string // sent as a bearer token; "" sends none
	CAFile string // PEM certificates to trust instead of the system's; "" trusts the system's
	// Headers are sent with every request. NewClient refuses those that the client sets itself.
	Headers http.Header
	// Timeouts limit streamed requests; Connect limits all requests.
	Timeouts Timeouts
	// Transport replaces the client's own connections.
	Transport http.RoundTripper
}

// Client sends completions to one server and times the output. It keeps as many connections open as
// there are requests in flight, and is safe for concurrent use.
type Client struct {
	target   collect.Target
	key      string
	headers  http.Header
	timeouts Timeouts
	dialect  atomic.Uint32 // the dialect that the server accepts
	http     http.Client
	model    string
	// lock guards model. It is a channel so that waiting for it ends with the
	// context.
	lock chan struct{}
}

// NewClient returns a client of a server. It reads the certificate file, if there is
// one, and contacts nothing.
func NewClient(target collect.Target, o Options) (*Client, error) {
	if err := checkHeaders(o.Headers, o.APIKey != ""); err != nil {
		return nil, err
	}
	o.Timeouts.Connect = cmp.Or(max(o.Timeouts.Connect, 0), dialTimeout)
	transport := o.Transport
	if transport == nil {
		config, err := collect.TrustCAs(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read --ca-file: %w", err)
		}
		transport = newTransport(config, o.Timeouts.Connect)
	}
	return &Client{
		target:   target,
		key:      o.APIKey,
		headers:  o.Headers.Clone(),
		timeouts: o.Timeouts,
		model:    o.Model,
		lock:     make(chan struct{}, 1),
		http: http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func newTransport(config *tls.Config, connect time.Duration) *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: connect}).DialContext,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: connect,
		IdleConnTimeout:     idleConnTimeout,
		MaxIdleConns:        maxIdleConns,
		MaxIdleConnsPerHost: maxIdleConns,
		// A compressed stream arrives in bursts, which would be measured as latency.
		DisableCompression: true,
	}
}

// StatusError is an answer other than 200.
type StatusError struct {
	Code    int    // HTTP status
	Message string // what the server said, cut to one line
}

// Error returns the status and the server's message.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("status %d %s", e.Code, http.StatusText(e.Code))
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// errSlow reports that askTimeout has passed.
var errSlow = fmt.Errorf("no answer in %v", askTimeout)

// promptly calls ask with a context that ends after askTimeout, and returns errSlow if that limit
// was reached.
func promptly(ctx context.Context, ask func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	err := ask(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return errSlow
	}
	return err
}

// Model returns the model name for requests: the configured one, otherwise the first that the
// server lists. It requests the list once, which takes at most ten seconds.
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
	model, err := c.firstModel(ctx)
	if err == nil {
		c.model = model
	}
	return model, err
}

func (c *Client) firstModel(ctx context.Context) (string, error) {
	where := "list models at " + c.target.Base() + modelsPath
	body, err := c.ask(ctx, modelsPath, nil)
	var status *StatusError
	switch {
	case errors.Is(err, errSlow), errors.As(err, &status):
		return "", fmt.Errorf("%s: %w", where, err)
	case err != nil:
		return "", err
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return "", fmt.Errorf("%s: %w", where, notAList(body))
	}
	if len(list.Data) == 0 || list.Data[0].ID == "" {
		return "", fmt.Errorf("%s: the server names none; give the model's name", where)
	}
	return list.Data[0].ID, nil
}

// notAList says what came in place of a list of models.
func notAList(body []byte) error {
	what := "something other than a list of models"
	if text := bytes.TrimSpace(body); bytes.HasPrefix(text, []byte("<")) {
		what = webPage(text)
	}
	return errors.New("the server answered with " + what + ": is that the address of an OpenAI-compatible server?")
}

// ask sends a request with a response in one piece, and returns its body: a GET, or a POST if body
// is not nil. After askTimeout it returns errSlow. A status other than 200 is a *StatusError.
func (c *Client) ask(ctx context.Context, path string, body any) (answer []byte, err error) {
	err = promptly(ctx, func(ctx context.Context) error {
		answer, err = c.exchangeWhole(ctx, path, body)
		return err
	})
	return answer, err
}

// exchangeWhole is ask without a time limit.
func (c *Client) exchangeWhole(ctx context.Context, path string, body any) ([]byte, error) {
	request, err := c.request(ctx, path, "application/json", body)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, c.readStatus(response)
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return answer, nil
}

// request builds an HTTP request: a GET, or a POST if there is a body.
func (c *Client) request(ctx context.Context, path, accept string, body any) (*http.Request, error) {
	method, encoded := http.MethodGet, []byte(nil)
	if body != nil {
		var err error
		if encoded, err = json.Marshal(body); err != nil {
			return nil, err
		}
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(ctx, method, c.target.Base()+path, bytes.NewReader(encoded))
	if err != nil {
		return nil, err
	}
	for name, values := range c.headers {
		request.Header[name] = values
	}
	request.Header.Set("Accept", accept)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
		// llama.cpp's server promises to keep a connection open but closes it after every stream
		// (b11549), so that the next request on it may fail. Present and empty, this header is not
		// sent, but makes net/http repeat such a request on a new connection as long as no part of
		// an answer has arrived.
		request.Header["Idempotency-Key"] = nil
	}
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	return request, nil
}

// readStatus turns an answer other than 200 into an error with the server's message.
func (c *Client) readStatus(response *http.Response) *StatusError {
	if to, err := response.Location(); err == nil && response.StatusCode/100 == 3 {
		// Leave out possible secrets: a user, a query.
		elsewhere := url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path}
		return &StatusError{Code: response.StatusCode, Message: "it redirects to " + oneLine(elsewhere.String()) + ", which is not followed: give that address if you trust it"}
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBytes))
	body = []byte(c.hide(string(body)))
	if text := bytes.TrimSpace(body); len(text) > 0 && text[0] == '<' {
		return &StatusError{Code: response.StatusCode, Message: webPage(text)}
	}
	return &StatusError{Code: response.StatusCode, Message: serverMessage(body)}
}
