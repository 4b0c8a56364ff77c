package docker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// daemon talks to the Engine API of Docker over a socket of this machine, in the version that Docker
// prefers. It passes JSON on as Docker wrote it: a client with types for it loses what they do not have.
type daemon struct {
	host    string // unix:///var/run/docker.sock
	client  *http.Client
	version string // "/v1.41", "" until Docker was asked
}

// defaultHost is where Docker listens unless DOCKER_HOST says otherwise.
const defaultHost = "unix:///var/run/docker.sock"

// maxAnswer limits an answer of Docker, in bytes.
const maxAnswer = 16 << 20

// callWithin limits a call, and a change or a revert as a whole. The longest call stops a container, which may
// take as long as that is configured.
const callWithin = 15 * time.Minute

// answerWithin limits a question, which changes nothing. Tests change it.
var answerWithin = 2 * time.Minute

// bounded limits calls whose answers a change or a revert waits for although its run is over.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.WithoutCancel(ctx), callWithin, fmt.Errorf("the change did not end within %v in Docker", callWithin))
}

// newDaemon returns the daemon of a host; "" stands for DOCKER_HOST or the default. It connects to nothing.
func newDaemon(host string) *daemon {
	host = cmp.Or(host, os.Getenv("DOCKER_HOST"), defaultHost)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		path, ok := strings.CutPrefix(host, "unix://")
		if !ok {
			return nil, errors.New("it is no unix socket")
		}
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return &daemon{host: host, client: &http.Client{Transport: &http.Transport{DialContext: dial}, Timeout: callWithin}}
}

// statusError is an answer of Docker that is no success.
type statusError struct {
	code    int
	message string
}

func (e *statusError) Error() string { return e.message }

// missing reports whether Docker said that something does not exist.
func missing(err error) bool { return hasStatus(err, http.StatusNotFound) }

func hasStatus(err error, code int) bool {
	var e *statusError
	return errors.As(err, &e) && e.code == code
}

// call sends a request, with a JSON body unless that is nil, and returns the answer. "Nothing to do"
// (304) is a success.
func (d *daemon) call(ctx context.Context, method, path string, query url.Values, body any) ([]byte, error) {
	if d.version == "" {
		header, _, err := d.send(ctx, http.MethodGet, "/_ping", nil)
		if err != nil {
			return nil, err
		}
		d.version = "/v" + header.Get("Api-Version")
	}
	var text io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		text = bytes.NewReader(data)
	}
	_, answer, err := d.send(ctx, method, d.version+path+"?"+query.Encode(), text)
	return answer, err
}

// send sends one request.
func (d *daemon) send(ctx context.Context, method, path string, body io.Reader) (http.Header, []byte, error) {
	if method == http.MethodGet {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, answerWithin, fmt.Errorf("no answer from Docker at %s within %v", d.host, answerWithin))
		defer cancel()
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://docker"+path, body)
	if err != nil {
		return nil, nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := d.client.Do(req)
	switch {
	case ctx.Err() != nil:
		return nil, nil, context.Cause(ctx)
	case errors.Is(err, fs.ErrPermission):
		return nil, nil, fmt.Errorf("user %d may not use Docker at %s: run rooftop with sudo, or as a member of the group that owns it", os.Geteuid(), d.host)
	case err != nil:
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return nil, nil, fmt.Errorf("no answer from Docker at %s (%w): set DOCKER_HOST if it listens elsewhere", d.host, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	} else if err != nil {
		return nil, nil, fmt.Errorf("the answer of Docker was cut off: %w", err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		var said struct{ Message string }
		_ = json.Unmarshal(text, &said)
		return nil, nil, &statusError{resp.StatusCode, cmp.Or(said.Message, resp.Status)}
	}
	return resp.Header, text, nil
}

// unframed returns the text of a container's output, which comes in frames: a byte for the stream, three
// of no meaning, and the length (ContainerAttach in the documentation of the API).
func unframed(stream []byte) []byte {
	const header = 8
	var text []byte
	for len(stream) >= header {
		size := min(uint64(binary.BigEndian.Uint32(stream[4:])), uint64(len(stream)-header))
		text = append(text, stream[header:header+size]...)
		stream = stream[header+size:]
	}
	return text
}
