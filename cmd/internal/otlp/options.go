package otlp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Options says where an export goes and whose it is. Endpoint is required.
type Options struct {
	// Endpoint is the base URL of a collector, http or https, with or without a path;
	// "/v1/traces" and "/v1/metrics" are put behind it (OTLP specification, "OTLP/HTTP
	// Request"). The usual port is 4318.
	Endpoint string
	Headers  Headers // sent to the endpoint alone
	CAFile   string  // PEM certificates trusted instead of the system's

	Version string // of rooftop
	Run     Run
}

// Run is what a capture does not say of the run that it holds.
type Run struct {
	// Operation is "chat" or "text_completion"; "" for an observation.
	Operation string
	// Provider names the API's flavour: "openai" where it is "".
	Provider      string
	Model         string // as it was asked for; "" is unknown
	ServerAddress string // host of the server; "" is unknown
	ServerPort    int    // 0 is unknown
}

// Headers are sent with every request to a collector: its key. Every way of
// printing them shows a placeholder.
type Headers struct{ fields http.Header }

const (
	redacted       = "[redacted]"
	maxHeaderBytes = 16 << 10
)

// String returns a placeholder, or nothing where there are none.
func (h Headers) String() string {
	if len(h.fields) == 0 {
		return ""
	}
	return redacted
}

// GoString returns what String does, for %#v.
func (h Headers) GoString() string { return h.String() }

// MarshalText returns what String does, for JSON, YAML and slog.
func (h Headers) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// ReadHeaders reads a file with one header on a line, "Name: value". Errors name the
// file and the line and never what stands there.
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
		return Headers{}, fmt.Errorf("read the headers for the collector: %s is larger than %d bytes: it must hold headers alone", path, maxHeaderBytes)
	}
	h, err := ParseHeaders(string(b))
	if err != nil {
		return Headers{}, fmt.Errorf("read %s: %w", path, err)
	}
	return h, nil
}

// ours are the headers that say what is sent: nobody else sets them.
var ours = []string{"Connection", "Content-Encoding", "Content-Length", "Content-Type", "Host", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent"}

// ParseHeaders reads lines "Name: value"; empty ones and those that begin with # are
// passed over. The error names the line and repeats nothing of it.
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
			return Headers{}, fmt.Errorf("line %d is no header: write it as Name: value", n)
		case name == "" || strings.ContainsFunc(name, notToken):
			return Headers{}, fmt.Errorf("line %d: the name of a header holds letters, digits and dashes", n)
		case value == "" || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }):
			return Headers{}, fmt.Errorf("line %d: the value of a header is ASCII on one line and not empty", n)
		}
		for _, own := range ours {
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

// ErrEndpoint says that an address cannot be a collector's. It arrives wrapped in a
// sentence with the next step.
var ErrEndpoint = errors.New("not a collector's address")

// Check says what is wrong with the options, before a run begins whose export they
// are: one sentence, nil where nothing is. It reads the certificate file and talks
// to nobody.
func (o *Options) Check() error {
	if _, err := o.base(); err != nil {
		return err
	}
	_, err := o.transport()
	return err
}

// base is the endpoint without a slash at its end.
func (o *Options) base() (string, error) {
	const next = "give --otlp-endpoint http://HOST:4318"
	u, err := url.Parse(o.Endpoint)
	switch {
	case err != nil:
		// The parser's own words repeat the address, with what it may hold.
		return "", fmt.Errorf("%w: it is no URL; %s", ErrEndpoint, next)
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

// transport reaches the endpoint and nothing else. It is used bare, so that nothing
// follows a redirect.
func (o *Options) transport() (*http.Transport, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the collector's certificates: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read the collector's certificates: %s holds no PEM certificate", o.CAFile)
		}
	}
	return &http.Transport{
		Proxy:                  nil, // of the environment: the address is the whole truth
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    5 * time.Second,
		MaxConnsPerHost:        1,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
	}, nil
}
