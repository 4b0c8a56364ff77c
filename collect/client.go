package collect

import (
	"bytes"
	"cmp"
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

	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Defaults for Options that are zero.
const (
	DefaultTimeout  = 5 * time.Second
	DefaultMaxBytes = 16 << 20
)

// MetricsAccept is the Accept header of a metrics page. Servers may answer with another format, so
// pages are parsed by content.
const MetricsAccept = "text/plain; version=0.0.4"

// Errors that callers branch on. All of them are wrapped in a message with what failed, where, and
// the next step.
var (
	// ErrUnreachable reports that no answer arrived: connection refused, no route, unknown host
	// name, failed TLS handshake, or a timeout.
	ErrUnreachable = errors.New("unreachable")
	// ErrTooLarge reports that an answer was larger than Options.MaxBytes.
	ErrTooLarge = errors.New("answer too large")
	// ErrRedirect reports a redirect to another address, which is not followed.
	ErrRedirect = errors.New("redirect to another address")
)

// StatusError reports an answer with a status other than 200.
type StatusError struct {
	URL  string
	Code int
	Hint string // the next step; "" for none
}

// Error returns the status in words, and the next step.
func (e *StatusError) Error() string {
	s := fmt.Sprintf("%s answered %d %s", e.URL, e.Code, http.StatusText(e.Code))
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

// Options configure a Client. Only Target is required.
type Options struct {
	Target   Target
	Token    Secret        // sent as a bearer token, only to Target
	CAFile   string        // PEM certificates trusted instead of the system's
	Timeout  time.Duration // of a whole request, from dial to last byte; 0: DefaultTimeout
	MaxBytes int64         // maximum size of an answer after decompression; 0: DefaultMaxBytes
	// UserAgent names the program and its version; "" is "rooftop".
	UserAgent string
	// Dial replaces the network, for tests and tunnels. Nil uses the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Client sends requests to one server over one keep-alive connection, one at a time whatever the
// number of callers, to disturb the server as little as possible. It contacts no address except its
// target's: it ignores proxy settings in the environment and refuses redirects to other servers.
type Client struct {
	o         Options         // with its defaults
	transport *http.Transport // used directly, because http.Client follows redirects
	turn      chan struct{}   // has one value while a request is in flight

	mu    sync.Mutex
	moved map[string]string // endpoint to the path on the same server that it redirects to
}

// NewClient returns a client for a server. It reads the certificate file, if there is one, but
// opens no connection.
func NewClient(o Options) (*Client, error) {
	if o.Target.IsZero() {
		return nil, fmt.Errorf("%w: none given; give --url", ErrTarget)
	}
	o.Timeout, o.MaxBytes = cmp.Or(max(o.Timeout, 0), DefaultTimeout), cmp.Or(max(o.MaxBytes, 0), DefaultMaxBytes)
	o.UserAgent = cmp.Or(o.UserAgent, "rooftop")
	tlsConfig, err := TrustCAs(o.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read --ca-file: %w", err)
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext
	}
	transport := &http.Transport{
		Proxy:                  nil,
		DialContext:            o.Dial,
		TLSClientConfig:        tlsConfig,
		MaxConnsPerHost:        1,
		MaxIdleConnsPerHost:    1,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: 64 << 10,
		// Compressing costs the server, on the event loop that streams tokens.
		DisableCompression: true,
	}
	return &Client{o: o, transport: transport, turn: make(chan struct{}, 1), moved: map[string]string{}}, nil
}

// maxCertificates is the largest file of certificates that is read, in bytes.
const maxCertificates = 4 << 20

// TrustCAs returns a TLS configuration that trusts the PEM certificates of a file, or the system's
// if path is "".
func TrustCAs(path string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if path == "" {
		return config, nil
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // on a FIFO, waiting for a writer might never end
	if err != nil {
		return nil, err
	}
	defer file.Close()
	pem, err := io.ReadAll(io.LimitReader(file, maxCertificates+1))
	if err != nil {
		return nil, err
	}
	if len(pem) > maxCertificates {
		return nil, fmt.Errorf("%s is larger than %d KiB", path, maxCertificates>>10)
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no PEM certificate", path)
	}
	return config, nil
}

// Target returns the server's address.
func (c *Client) Target() Target { return c.o.Target }

// Close closes the idle connection.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// maxRedirects limits a chain of redirects within the same server.
const maxRedirects = 3

// Get requests an endpoint, which is a path below the base URL with its query, and appends the body
// to buf, which may be nil. It waits until no other request is in flight. A status other than 200
// is a *StatusError; other failures wrap the errors of this package.
func (c *Client) Get(ctx context.Context, endpoint, accept string, buf []byte) ([]byte, error) {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return buf, c.explain(caller, c.o.Target.Base()+plain(endpoint), ctx.Err())
	}
	c.mu.Lock()
	path, known := c.moved[endpoint]
	c.mu.Unlock()
	if !known {
		path = c.o.Target.prefix + endpoint
		if endpoint == "/metrics" && c.o.Target.query != "" {
			path += "?" + c.o.Target.query
		}
	}
	for hop := 0; ; hop++ {
		body, next, err := c.once(ctx, path, accept, buf)
		switch {
		case err != nil:
			c.remember(endpoint, "")
			if !isAnswer(err) {
				err = c.explain(caller, c.o.Target.scheme+"://"+c.o.Target.host+plain(path), err)
			}
			return body, err
		case next == "":
			if hop > 0 {
				c.remember(endpoint, path)
			}
			return body, nil
		}
		if hop == maxRedirects {
			return buf, fmt.Errorf("%w: %s redirects in a loop", ErrRedirect, c.o.Target.Base()+plain(endpoint))
		}
		path = next
	}
}

// remember stores the path that an endpoint redirected to, or deletes it if path is "".
func (c *Client) remember(endpoint, path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if path == "" {
		delete(c.moved, endpoint)
	} else {
		c.moved[endpoint] = path
	}
}

// isAnswer reports whether an error describes the server's answer and needs no explanation, rather
// than a failure of the connection.
func isAnswer(err error) bool {
	var status *StatusError
	return errors.As(err, &status) || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrRedirect) || errors.Is(err, ErrTarget)
}

// withheld is the key of contexts of WithoutToken.
type withheld struct{}

// WithoutToken returns a context whose requests carry no token, while it is unknown who answers them.
func WithoutToken(ctx context.Context) context.Context {
	return context.WithValue(ctx, withheld{}, true)
}

// once sends one request for a path of the server. For a redirect within the server it returns the
// new path in next.
func (c *Client) once(ctx context.Context, path, accept string, buf []byte) (body []byte, next string, err error) {
	where := c.o.Target.scheme + "://" + c.o.Target.host + plain(path)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.o.Target.scheme+"://"+c.o.Target.host+path, nil)
	if err != nil {
		return buf, "", fmt.Errorf("%w: %s", ErrTarget, where)
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", c.o.UserAgent)
	withToken := !c.o.Token.IsZero() && ctx.Value(withheld{}) == nil
	if withToken {
		req.Header.Set("Authorization", "Bearer "+c.o.Token.value)
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
		return buf, "", &StatusError{URL: where, Code: resp.StatusCode, Hint: hint(resp.StatusCode, withToken)}
	case resp.ContentLength > c.o.MaxBytes:
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
		// Limit the compressed stream too: a header alone can be endless.
		z, err := gzip.NewReader(io.LimitReader(resp.Body, c.o.MaxBytes))
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
	n, err := w.ReadFrom(io.LimitReader(r, c.o.MaxBytes+1))
	if err == nil && n > c.o.MaxBytes {
		err = ErrTooLarge
	}
	return w.Bytes(), err
}

func (c *Client) tooLarge(where string) error {
	return fmt.Errorf("%w: %s sends more than %d MiB: not a metrics page? check --url", ErrTooLarge, where, c.o.MaxBytes>>20)
}

// within returns the path that a redirect leads to, or ErrRedirect if it leaves the server.
func (c *Client) within(where string, resp *http.Response) (string, error) {
	to, err := resp.Request.URL.Parse(resp.Header.Get("Location"))
	if err != nil {
		return "", fmt.Errorf("%w: %s redirects to an invalid URL", ErrRedirect, where)
	}
	port := to.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[to.Scheme]
	}
	if to.Scheme != c.o.Target.scheme || net.JoinHostPort(strings.ToLower(to.Hostname()), port) != c.o.Target.host || to.User != nil {
		elsewhere := &url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path}
		return "", fmt.Errorf("%w: %s redirects to %s, which is not followed; give %s if you trust it", ErrRedirect, where, elsewhere, launch.Line("--url", elsewhere.String()))
	}
	path := to.EscapedPath()
	if to.RawQuery != "" {
		path += "?" + to.RawQuery
	}
	return path, nil
}

// hint returns the next step for a status, "" if there is none.
func hint(code int, withToken bool) string {
	switch {
	case (code == http.StatusUnauthorized || code == http.StatusForbidden) && withToken:
		return "the API key was not accepted"
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return "an API key is required: give --api-key-file"
	case code == http.StatusBadRequest:
		return "does it speak TLS? try --url https://"
	case code == http.StatusNotFound:
		return "is this the port of an inference server? check --url"
	case code == http.StatusTooManyRequests:
		return "something in front of the server limits requests; ask the server itself"
	case code >= 500:
		return "the server failed or is still starting; check its log"
	}
	return ""
}

// explain turns a transport error into a sentence with a next step. If the caller's own context
// ended, it returns that error instead.
func (c *Client) explain(caller context.Context, where string, err error) error {
	if caller.Err() != nil {
		return fmt.Errorf("get %s: %w", where, caller.Err())
	}
	return c.o.Target.Unreached(where, c.o.Timeout, err)
}

// Unreached turns the transport error of a request into a sentence with a next step, which wraps
// [ErrUnreachable]. where is the request's address, and within the time that it had.
func (t Target) Unreached(where string, within time.Duration, err error) error {
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
		return wrap("unknown host %s: check --url", dns.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		return wrap("connection refused at %s: is the server up? check --url", where)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return wrap("%s gave no complete answer within %s: is the server overloaded, or is a firewall in between?", where, within)
	case errors.As(err, &authority):
		return wrap("the certificate of %s is signed by an unknown authority: give --ca-file", where)
	case errors.As(err, &hostname):
		return wrap("the certificate of %s is for another name: %v", where, hostname)
	case errors.As(err, &invalid):
		return wrap("the certificate of %s is not valid: %v", where, invalid)
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return wrap("%s does not speak TLS: give --url http://%s", where, t.host)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return wrap("%s closed the connection in the middle of an answer: did the server stop?", where)
	// The second is net/http's name for a server that speaks before it is asked.
	case strings.Contains(err.Error(), "malformed HTTP"), strings.Contains(err.Error(), "readLoopPeekFailLocked"):
		return wrap("%s does not speak HTTP: is this the port of an inference server? check --url", where)
	}
	return wrap("%s: %v", where, err)
}

// drain reads the rest of a short error answer, so that the connection can be used again.
func drain(r io.Reader) { _, _ = io.CopyN(io.Discard, r, 16<<10) }

// plain cuts the query off a path, because it may contain a token.
func plain(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return path
}
