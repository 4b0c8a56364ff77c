package probe

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// ownHeaders are set by the client or by HTTP itself. Another Host or length breaks the request;
// compression makes the stream arrive in bursts; with an idempotency key a gateway answers all
// requests as one.
var ownHeaders = []string{
	"Accept", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host",
	"Idempotency-Key", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// checkHeaders returns an error for an extra header that cannot be sent. The error contains no
// value, because that may be a secret.
func checkHeaders(headers http.Header, withKey bool) error {
	for name, values := range headers {
		switch {
		case !tokenLike(name):
			return fmt.Errorf("header %q: invalid header name; give NAME: VALUE", name)
		case slices.Contains(ownHeaders, http.CanonicalHeaderKey(name)):
			return fmt.Errorf("header %s: the request sets it itself; leave it out", name)
		case withKey && http.CanonicalHeaderKey(name) == "Authorization":
			return fmt.Errorf("header %s: the API key is sent there; give one of the two", name)
		case http.CanonicalHeaderKey(name) != name:
			return fmt.Errorf("header %s: it is spelled %s", name, http.CanonicalHeaderKey(name))
		case slices.ContainsFunc(values, unsendable):
			return fmt.Errorf("header %s: its value holds a line break or a control character; leave it out", name)
		}
	}
	return nil
}

// tokenLike reports whether a name is a token according to RFC 9110, 5.6.2.
func tokenLike(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}

// unsendable reports whether a value is not a field value according to RFC 9110, 5.5.
func unsendable(value string) bool {
	return strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}
