package collect

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Limits that hold where Options leaves them zero.
const (
	DefaultTimeout  = 5 * time.Second
	DefaultMaxBytes = 16 << 20
)

// MetricsAccept is the Accept header of a metrics page. Servers answer what
// they like: pages are parsed by content.
const MetricsAccept = "text/plain; version=0.0.4"

// Errors that callers branch on. All of them arrive wrapped in a sentence that
// says what, where, and the next step.
var (
	// ErrUnreachable says that no answer came: refused, no route, no such name,
	// TLS not agreed, or not answered in time.
	ErrUnreachable = errors.New("unreachable")
	// ErrTooLarge says that an answer was larger than a page can sensibly be.
	ErrTooLarge = errors.New("answer too large")
	// ErrRedirect says that the server sent us elsewhere, which is not followed.
	ErrRedirect = errors.New("redirect to another address")
)

// StatusError is an answer with a status other than 200.
type StatusError struct {
	URL  string
	Code int
	Hint string // the next step, "" none
}

// Error returns the status in words with the next step.
func (e *StatusError) Error() string {
	s := fmt.Sprintf("%s answered %d %s", e.URL, e.Code, http.StatusText(e.Code))
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

// Options says how to talk to a server. Only Target is required.
type Options struct {
	Target   Target
	Token    Secret        // sent as a bearer token, to Target alone
	CAFile   string        // PEM certificates trusted instead of the system's
	Timeout  time.Duration // of a whole request, dial to last byte; 0: DefaultTimeout
	MaxBytes int64         // of an answer, after decompression; 0: DefaultMaxBytes
	// UserAgent names the program and its version; "" is "rooftop".
	UserAgent string
	// Dial replaces the network, for tests and for tunnels. Nil dials.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Client talks to one server over one keep-alive connection with one request in
// flight, whatever the number of callers: it is a guest there. It contacts no
// address but its target's: proxies of the environment are ignored and
// redirects to elsewhere refused.
type Client struct {
	target    Target
	token     Secret
	timeout   time.Duration
	maxBytes  int64
	userAgent string
	transport *http.Transport // used bare: nothing here follows a redirect by itself
	turn      chan struct{}   // holds one value while a request is in flight

	mu    sync.Mutex
	moved map[string]string // endpoint to the path on the same server that it redirects to
}

// NewClient returns a client for a server. It opens no connection yet; it reads
// the certificate file, if one is named.
func NewClient(o Options) (*Client, error) {
	if o.Target.IsZero() {
		return nil, fmt.Errorf("%w: none given; give --url", ErrTarget)
	}
	c := &Client{
		target:    o.Target,
		token:     o.Token,
		timeout:   o.Timeout,
		maxBytes:  o.MaxBytes,
		userAgent: o.UserAgent,
		turn:      make(chan struct{}, 1),
		moved:     map[string]string{},
	}
	if c.timeout <= 0 {
		c.timeout = DefaultTimeout
	}
	if c.maxBytes <= 0 {
		c.maxBytes = DefaultMaxBytes
	}
	if c.userAgent == "" {
		c.userAgent = "rooftop"
	}
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read --ca-file: %w", err)
		}
		tlsConfig.RootCAs = x509.NewCertPool()
		if !tlsConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read --ca-file: %s holds no PEM certificate", o.CAFile)
		}
	}
	dial := o.Dial
	if dial == nil {
		dial = (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext
	}
	c.transport = &http.Transport{
		Proxy:                  nil,
		DialContext:            dial,
		TLSClientConfig:        tlsConfig,
		MaxConnsPerHost:        1,
		MaxIdleConnsPerHost:    1,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: 64 << 10,
		// Compressing costs the server, on the event loop that streams tokens.
		DisableCompression: true,
	}
	return c, nil
}

// Target returns the server's address.
func (c *Client) Target() Target { return c.target }

// Close drops the idle connection.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// maxRedirects bounds a chain of redirects within the same server.
const maxRedirects = 3

// Get asks for an endpoint (a path below the base URL, with its query) and
// appends the body to buf, which may be nil. It waits for its turn. A status
// other than 200 is a *StatusError; see the errors of this package for the rest.
func (c *Client) Get(ctx context.Context, endpoint, accept string, buf []byte) ([]byte, error) {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return buf, c.explain(caller, c.target.Base()+plain(endpoint), ctx.Err())
	}
	c.mu.Lock()
	path, known := c.moved[endpoint]
	c.mu.Unlock()
	if !known {
		path = c.target.prefix + endpoint
		if endpoint == "/metrics" && c.target.query != "" {
			path += "?" + c.target.query
		}
	}
	for hop := 0; ; hop++ {
		body, next, err := c.once(ctx, path, accept, buf)
		switch {
		case err != nil:
			c.remember(endpoint, "")
			if !isAnswer(err) {
				err = c.explain(caller, c.target.scheme+"://"+c.target.host+plain(path), err)
			}
			return body, err
		case next == "":
			if hop > 0 {
				c.remember(endpoint, path)
			}
			return body, nil
		}
		if hop == maxRedirects {
			return buf, fmt.Errorf("%w: %s redirects in a circle", ErrRedirect, c.target.Base()+plain(endpoint))
		}
		path = next
	}
}

// remember keeps the path that an endpoint redirected to, or forgets it.
func (c *Client) remember(endpoint, path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if path == "" {
		delete(c.moved, endpoint)
	} else {
		c.moved[endpoint] = path
	}
}

// isAnswer reports whether an error is what the server said, worded already,
// rather than a fault on the way.
func isAnswer(err error) bool {
	var status *StatusError
	return errors.As(err, &status) || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrRedirect) || errors.Is(err, ErrTarget)
}

// once makes one request for a path of the server. A redirect within the server
// returns the path it leads to.
func (c *Client) once(ctx context.Context, path, accept string, buf []byte) (body []byte, next string, err error) {
	where := c.target.scheme + "://" + c.target.host + plain(path)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.target.scheme+"://"+c.target.host+path, nil)
	if err != nil {
		return buf, "", fmt.Errorf("%w: %s", ErrTarget, where)
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", c.userAgent)
	if !c.token.IsZero() {
		req.Header.Set("Authorization", "Bearer "+c.token.value)
	}
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return buf, "", err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400 && resp.Header.Get("Location") != "":
		drain(resp.Body)
		next, err = c.within(where, resp)
		return buf, next, err
	case resp.StatusCode != http.StatusOK:
		drain(resp.Body)
		return buf, "", &StatusError{URL: where, Code: resp.StatusCode, Hint: hint(resp.StatusCode, !c.token.IsZero())}
	case resp.ContentLength > c.maxBytes:
		return buf, "", c.tooLarge(where)
	}
	body, err = c.read(buf, resp)
	if errors.Is(err, ErrTooLarge) {
		err = c.tooLarge(where)
	}
	return body, "", err
}

// read appends the body of an answer to buf, decompressed, up to the limit.
func (c *Client) read(buf []byte, resp *http.Response) ([]byte, error) {
	var r io.Reader = resp.Body
	switch encoding := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding"))); encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		// The limit holds for the compressed stream too: a header alone can be endless.
		z, err := gzip.NewReader(io.LimitReader(resp.Body, c.maxBytes))
		if err != nil {
			return buf, fmt.Errorf("gzip: %w", err)
		}
		r = z
	default:
		return buf, fmt.Errorf("the answer is compressed as %q, which was not asked for", encoding)
	}
	w := bytes.NewBuffer(buf)
	if resp.ContentLength > 0 {
		w.Grow(int(resp.ContentLength) + bytes.MinRead)
	}
	n, err := w.ReadFrom(io.LimitReader(r, c.maxBytes+1))
	if err == nil && n > c.maxBytes {
		err = ErrTooLarge
	}
	return w.Bytes(), err
}

func (c *Client) tooLarge(where string) error {
	return fmt.Errorf("%w: %s sends more than %d MiB: is that a metrics page? check --url", ErrTooLarge, where, c.maxBytes>>20)
}

// within returns the path that a redirect leads to, if it stays on the server.
func (c *Client) within(where string, resp *http.Response) (string, error) {
	to, err := resp.Request.URL.Parse(resp.Header.Get("Location"))
	if err != nil {
		return "", fmt.Errorf("%w: %s redirects to what is no URL", ErrRedirect, where)
	}
	port := to.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[to.Scheme]
	}
	if to.Scheme != c.target.scheme || net.JoinHostPort(strings.ToLower(to.Hostname()), port) != c.target.host || to.User != nil {
		elsewhere := &url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path}
		return "", fmt.Errorf("%w: %s redirects to %s, which is not followed; give --url %s if you trust it", ErrRedirect, where, elsewhere, elsewhere)
	}
	path := to.EscapedPath()
	if to.RawQuery != "" {
		path += "?" + to.RawQuery
	}
	return path, nil
}

// hint says what to do about a status.
func hint(code int, withToken bool) string {
	switch {
	case (code == http.StatusUnauthorized || code == http.StatusForbidden) && withToken:
		return "the API key was not accepted"
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return "it wants a key; give --api-key-file"
	case code == http.StatusBadRequest:
		return "does it speak TLS? try --url https://"
	case code == http.StatusNotFound:
		return "is this the port of a vLLM server? check --url"
	case code == http.StatusTooManyRequests:
		return "something in front of the server limits requests; ask the server itself"
	case code >= 500:
		return "the server is in trouble or still starting; its log says more"
	}
	return ""
}

// explain turns a transport error into a sentence with a next step. Where the
// caller's own context ended, that is the reason.
func (c *Client) explain(caller context.Context, where string, err error) error {
	if caller.Err() != nil {
		return fmt.Errorf("get %s: %w", where, caller.Err())
	}
	wrap := func(format string, a ...any) error {
		return fmt.Errorf("%w: %s", ErrUnreachable, fmt.Sprintf(format, a...))
	}
	var (
		dns       *net.DNSError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
		timeout   interface{ Timeout() bool }
	)
	switch {
	case errors.As(err, &dns):
		return wrap("no host is called %s: check --url", dns.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		return wrap("connection refused at %s: is the server up? check --url", where)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return wrap("%s gave no complete answer within %s: is the server overloaded, or a firewall between?", where, c.timeout)
	case errors.As(err, &authority):
		return wrap("the certificate of %s is signed by an unknown authority: give --ca-file", where)
	case errors.As(err, &hostname):
		return wrap("the certificate of %s is for another name: %v", where, hostname)
	case errors.As(err, &invalid):
		return wrap("the certificate of %s is not valid: %v", where, invalid)
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return wrap("%s does not speak TLS: give --url http://%s", where, c.target.host)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return wrap("%s broke off in the middle of an answer: did the server stop?", where)
	// The second is net/http's name for a server that speaks before it is asked.
	case strings.Contains(err.Error(), "malformed HTTP"), strings.Contains(err.Error(), "readLoopPeekFailLocked"):
		return wrap("%s does not speak HTTP: is this the port of a vLLM server? check --url", where)
	}
	return wrap("%s: %v", where, err)
}

// drain reads the little that an error answer holds, so that the connection can
// be used again; a larger one is closed.
func drain(r io.Reader) { _, _ = io.CopyN(io.Discard, r, 16<<10) }

// plain cuts the query off a path: it may carry a token.
func plain(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return path
}
