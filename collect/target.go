package collect

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// DefaultPort is the default port of vLLM.
const DefaultPort = "8000"

// ErrTarget reports that an address could not be parsed.
var ErrTarget = errors.New("not a server address")

// Target is the address of one server: scheme, host, port, and a path prefix of its endpoints. The
// zero Target is not an address.
type Target struct {
	scheme string // http or https
	host   string // host:port, IPv6 in brackets; always with a port
	prefix string // path in front of every endpoint, without trailing slash
	query  string // query of the metrics URL, as given
}

// ParseTarget parses an address: a base URL, the URL of the metrics page or of the OpenAI API
// (…/v1), host:port, a host, or a port of this machine. Without a scheme, http and port 8000 are
// assumed; with one, the scheme's default port. Errors wrap ErrTarget.
func ParseTarget(s string) (Target, error) {
	const next = `give --url as http://HOST:PORT, for example http://localhost:8000`
	refuse := func(format string, a ...any) (Target, error) {
		return Target{}, fmt.Errorf("%w: %s; %s", ErrTarget, fmt.Sprintf(format, a...), next)
	}
	text := strings.TrimSpace(s)
	if text == "" {
		return refuse("the address is empty")
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return refuse("the address holds a space or a control character")
	}
	text, defaultPort, err := completeAddress(text)
	if err != nil {
		return refuse("%v", err)
	}
	u, err := url.Parse(text)
	if err != nil {
		// The parser's error quotes the whole address, which may hold a password.
		return refuse("the address does not parse")
	}
	if u.User != nil {
		return Target{}, fmt.Errorf("%w: it holds a user name or password, which logs would show; leave it out and give --api-key-file", ErrTarget)
	}
	host, port := u.Hostname(), u.Port()
	if host == "" {
		return refuse("it names no host")
	}
	if port == "" {
		port = defaultPort
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return refuse("port %q is not between 1 and 65535", port)
	}
	prefix, query := splitPath(u)
	return Target{
		scheme: strings.ToLower(u.Scheme),
		host:   net.JoinHostPort(strings.ToLower(host), port),
		prefix: strings.TrimRight(prefix, "/"),
		query:  query,
	}, nil
}

// completeAddress adds a missing scheme and host, and returns the default port of the scheme.
func completeAddress(text string) (complete, defaultPort string, err error) {
	defaultPort = DefaultPort
	switch scheme, _, found := strings.Cut(text, "://"); {
	case !found && net.ParseIP(text) != nil && strings.Contains(text, ":"):
		text = "http://[" + text + "]"
	case !found && strings.Trim(text, "0123456789") == "":
		text = "http://localhost:" + text
	case !found && (strings.HasPrefix(strings.ToLower(text), "http:/") || strings.HasPrefix(strings.ToLower(text), "https:/")):
		return "", "", fmt.Errorf("%q has one slash after its scheme, not two", text)
	case !found && strings.HasPrefix(text, ":"):
		text = "http://localhost" + text
	case !found:
		text = "http://" + text
	case strings.EqualFold(scheme, "http"):
		defaultPort = "80"
	case strings.EqualFold(scheme, "https"):
		defaultPort = "443"
	default:
		return "", "", fmt.Errorf("scheme %q is neither http nor https", scheme)
	}
	return text, defaultPort, nil
}

// splitPath returns the path before a known endpoint, and the query if that endpoint is the metrics
// page.
func splitPath(u *url.URL) (prefix, query string) {
	prefix = strings.TrimRight(u.EscapedPath(), "/")
	if page, found := strings.CutSuffix(prefix, "/metrics"); found {
		prefix, query = page, u.RawQuery
	} else {
		for _, known := range []string{"/v1/chat/completions", "/v1/completions", "/v1/models", "/v1", "/health", "/version"} {
			if base, found := strings.CutSuffix(prefix, known); found {
				prefix = base
				break
			}
		}
	}
	return prefix, query
}

// IsZero reports whether t is the zero Target.
func (t Target) IsZero() bool { return t.host == "" }

// Base returns the base URL, without a trailing slash.
func (t Target) Base() string { return t.scheme + "://" + t.host + t.prefix }

// HostPort returns host:port, IPv6 addresses in brackets.
func (t Target) HostPort() string { return t.host }

// Metrics returns the URL of the metrics page without its query, which may contain a token.
func (t Target) Metrics() string { return t.Base() + "/metrics" }

// String returns the base URL. It contains no secret.
func (t Target) String() string { return t.Base() }
