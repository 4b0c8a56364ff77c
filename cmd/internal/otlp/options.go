package otlp

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/collect"
)

// Options are the destination and the origin of an export. Endpoint is required.
type Options struct {
	// Endpoint is the base URL of a collector, http or https, with or without a path;
	// "/v1/traces" and "/v1/metrics" are appended (OTLP specification, "OTLP/HTTP
	// Request"). The usual port is 4318.
	Endpoint string
	Headers  Headers // sent only to the endpoint
	CAFile   string  // PEM certificates trusted instead of the system's

	Version string // of rooftop
	Run     Run
}

// Run describes the requests and the server of a capture.
type Run struct {
	// Operation is "chat" or "text_completion"; "" for an observation.
	Operation string
	// Provider is the flavour of the API; "" is "openai".
	Provider      string
	Model         string // as requested; "" if unknown
	ServerAddress string // host of the server; "" if unknown
	ServerPort    int    // 0 if unknown
}

// Headers are sent with every request to a collector, for example as its API key. All ways of
// printing them show a placeholder.
type Headers struct{ fields http.Header }

const (
	redacted       = "[redacted]"
	maxHeaderBytes = 16 << 10
)

// String returns a placeholder, or "" if there are none.
func (h Headers) String() string {
	if len(h.fields) == 0 {
		return ""
	}
	return redacted
}

// GoString returns the same as String, for %#v.
func (h Headers) GoString() string { return h.String() }

// MarshalText returns the same as String, for JSON, YAML and slog.
func (h Headers) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// ReadHeaders reads a file with one header per line, "Name: value". Errors contain the file and the
// line number, never the content.
func ReadHeaders(path string) (Headers, error) {
	f, err := os.Open(path)
	if err != nil {
		return Headers{}, fmt.Errorf("read the headers for the collector: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxHeaderBytes+1))
	if err != nil {
		return Headers{}, fmt.Errorf("read the headers for the collector: %w", err)
	}
	if len(b) > maxHeaderBytes {
		return Headers{}, fmt.Errorf("read the headers for the collector: %s is larger than %d bytes: it must hold only headers", path, maxHeaderBytes)
	}
	h, err := ParseHeaders(string(b))
	if err != nil {
		return Headers{}, fmt.Errorf("read %s: %w", path, err)
	}
	return h, nil
}

// ownHeaders describe the message and cannot be set by the user.
var ownHeaders = []string{"Connection", "Content-Encoding", "Content-Length", "Content-Type", "Host", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent"}

// ParseHeaders parses lines "Name: value". It skips empty lines and those that begin with #. Errors
// contain the line number, never the line.
func ParseHeaders(text string) (Headers, error) {
	h := Headers{fields: http.Header{}}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, found := strings.Cut(line, ":")
		name, value = http.CanonicalHeaderKey(strings.TrimSpace(name)), strings.TrimSpace(value)
		switch {
		case !found:
			return Headers{}, fmt.Errorf("line %d is not a header: write Name: value", n)
		case name == "" || strings.ContainsFunc(name, notToken):
			return Headers{}, fmt.Errorf("line %d: a header name has only letters, digits, dashes and underscores", n)
		case value == "" || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }):
			return Headers{}, fmt.Errorf("line %d: a header value must be ASCII, on one line and not empty", n)
		}
		for _, own := range ownHeaders {
			if name == own {
				return Headers{}, fmt.Errorf("line %d: rooftop sets %s itself; leave it out", n, own)
			}
		}
		h.fields.Add(name, value)
	}
	return h, nil
}

func notToken(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
}

// ErrEndpoint reports that an address cannot be a collector's. It is wrapped in a message with the
// next step.
var ErrEndpoint = errors.New("not the address of a collector")

// Check validates the options before a run begins. The error is one sentence. It reads the
// certificate file but contacts no server.
func (o *Options) Check() error {
	if _, err := o.base(); err != nil {
		return err
	}
	_, err := o.transport()
	return err
}

// base returns the endpoint without a trailing slash.
func (o *Options) base() (string, error) {
	const next = "give --otlp-endpoint http://HOST:4318"
	u, err := url.Parse(o.Endpoint)
	switch {
	case err != nil:
		// The parser's error contains the address, which may have a secret.
		return "", fmt.Errorf("%w: it is not a URL; %s", ErrEndpoint, next)
	case u.User != nil:
		return "", fmt.Errorf("%w: it holds a user or a password; %s, and the key with --otlp-headers-file", ErrEndpoint, next)
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%w: its scheme is neither http nor https; %s", ErrEndpoint, next)
	case u.Hostname() == "":
		return "", fmt.Errorf("%w: it names no host; %s", ErrEndpoint, next)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", fmt.Errorf("%w: it holds a query or a fragment; %s, and a key with --otlp-headers-file", ErrEndpoint, next)
	}
	return u.Scheme + "://" + u.Host + strings.TrimRight(u.EscapedPath(), "/"), nil
}

// transport returns the transport to the endpoint. It is used without an http.Client, which would
// follow redirects.
func (o *Options) transport() (*http.Transport, error) {
	config, err := collect.TrustCAs(o.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read the collector's certificates: %w", err)
	}
	return &http.Transport{
		Proxy:                  nil, // ignore the environment
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    5 * time.Second,
		MaxConnsPerHost:        1,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
	}, nil
}
