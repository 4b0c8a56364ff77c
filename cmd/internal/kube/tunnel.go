package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/transport/spdy"

	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Tunnel is an address of this machine that leads to the server in one pod of a workload, through the API
// server, as kubectl port-forward does. When the pod is gone it leads to another one, unless it is of one pod
// only. Polling costs the API server one connection, and a request every ten seconds.
type Tunnel struct {
	w        *Workload
	only     *Pod // nil if it may lead to any pod of the workload
	listener net.Listener
	ctx      context.Context // ends with Close
	stop     context.CancelFunc

	mu    sync.Mutex
	conn  httpstream.Connection // to the kubelet of the pod; nil before the first
	port  int
	tried time.Time
	why   error // why the last try to connect failed
	next  int   // number of the next request
}

// Names of the protocol of kubectl port-forward: k8s.io/api/core/v1 and client-go/tools/portforward have them
// too, with all objects of the API.
const (
	forwardProtocol = "portforward.k8s.io"
	streamType      = "streamType"
	portHeader      = "port"
	requestID       = "requestID"
)

// connectEvery is the shortest time between two tries to reach a pod.
const connectEvery = time.Second

// Listen returns a tunnel that leads to a pod of the workload as soon as one is ready.
func (w *Workload) Listen(ctx context.Context) (*Tunnel, error) { return w.listen(ctx, nil) }

// ListenTo returns a tunnel that leads to one pod, and to no other one when that is gone.
func (w *Workload) ListenTo(ctx context.Context, p *Pod) (*Tunnel, error) { return w.listen(ctx, p) }

func (w *Workload) listen(ctx context.Context, only *Pod) (*Tunnel, error) {
	t := &Tunnel{w: w, only: only}
	var err error
	if t.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	t.ctx, t.stop = context.WithCancel(context.WithoutCancel(ctx))
	go t.serve()
	return t, nil
}

// URL returns the base URL of the server.
func (t *Tunnel) URL() string { return "http://" + t.listener.Addr().String() }

// Why returns why no pod can be reached now; nil if one can, as far as is known.
func (t *Tunnel) Why() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.why
}

// Close ends the tunnel and the requests in it.
func (t *Tunnel) Close() {
	t.stop()
	_ = t.listener.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn != nil {
		shut(t.conn)
	}
}

func (t *Tunnel) serve() {
	for {
		local, err := t.listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer local.Close()
			data, err := t.dial()
			if err != nil {
				return // the client sees a connection that ends
			}
			relay(local, data)
		}()
	}
}

// relay copies both ways until one side ends.
func relay(local net.Conn, data httpstream.Stream) {
	done := make(chan struct{}, 2)
	for _, way := range [][2]io.ReadWriteCloser{{local, data}, {data, local}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			done <- struct{}{}
		}()
	}
	<-done
	_ = local.Close()
	_ = data.Reset() // data that no one reads would hold up all streams of the connection
	<-done
}

// dial opens a connection to the server in the pod, and chooses another pod if this one is gone.
func (t *Tunnel) dial() (httpstream.Stream, error) {
	conn, port, request, err := t.current()
	if err != nil {
		return nil, err
	}
	data, err := t.stream(conn, port, request)
	if err != nil {
		t.drop(conn)
	}
	return data, err
}

// drop closes a connection, and has the next request choose a pod again. The library calls a connection closed only
// when each stream of it has got a reply, and a pod that is gone gives none.
func (t *Tunnel) drop(conn httpstream.Connection) {
	t.mu.Lock()
	if t.conn == conn {
		t.conn = nil
	}
	t.mu.Unlock()
	shut(conn)
}

// shutWithin is how long the end of a connection may take, which sends a last message.
const shutWithin = 2 * time.Second

// shut closes a connection. It abandons one whose other end no longer takes messages.
func shut(conn httpstream.Connection) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = conn.Close()
	}()
	select {
	case <-done:
	case <-time.After(shutWithin):
	}
}

// current returns the connection to a pod, the port of the server, and the number of a new request.
func (t *Tunnel) current() (conn httpstream.Connection, port, request int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn != nil {
		select {
		case <-t.conn.CloseChan():
			t.conn = nil
		default:
		}
	}
	if t.conn == nil {
		if time.Since(t.tried) < connectEvery {
			return nil, 0, 0, cmp.Or(t.why, errGone)
		}
		if err := t.connect(t.ctx); err != nil {
			return nil, 0, 0, err
		}
	}
	t.next++
	return t.conn, t.port, t.next, nil
}

// errGone means that the connection to a pod ended a moment ago.
var errGone = errors.New("the connection to the pod has ended")

// connect connects to the pod that requests should be sent to. mu is held.
func (t *Tunnel) connect(ctx context.Context) error {
	t.tried = time.Now()
	t.why = func() error {
		pod, err := t.pod(ctx)
		if err != nil {
			return err
		}
		container := pod.container(t.w.Container)
		if container == nil {
			return fmt.Errorf("pod %s has no container %s", pod.Metadata.Name, t.w.Container)
		}
		transport, upgrade, err := spdy.RoundTripperFor(t.w.config)
		if err != nil {
			return err
		}
		at := t.w.client.Post().AbsPath("/api/v1/namespaces/" + t.w.Namespace + "/pods/" + pod.Metadata.Name + "/portforward").URL()
		dialer := spdy.NewDialer(upgrade, &http.Client{Transport: transport}, http.MethodPost, at)
		conn, protocol, err := dialed(ctx, dialer)
		if err == nil && protocol != forwardProtocol {
			err = fmt.Errorf("it offers the protocol %q in place of %s", protocol, forwardProtocol)
		}
		switch {
		case err != nil && strings.Contains(err.Error(), "dialing backend"):
			return &nodeAwayError{pod.Metadata.Name, pod.Spec.NodeName}
		case err != nil && away(err):
			return t.w.explain(err)
		case err != nil:
			return fmt.Errorf("pod %s cannot be reached through the API server: %w", pod.Metadata.Name, err)
		}
		t.conn, t.port = conn, container.port()
		go t.watch(conn, pod)
		return nil
	}()
	return t.why
}

// nodeAwayError means that the API server cannot reach the kubelet of a pod's node, or has not heard of it for long.
// The pod may run all the same.
type nodeAwayError struct{ pod, node string }

func (e *nodeAwayError) Error() string {
	return fmt.Sprintf("pod %s cannot be reached: %s", e.pod, kubeletAway(e.node))
}

func kubeletAway(node string) string {
	return fmt.Sprintf("the kubelet of its node %s does not answer the API server (%s)", node, launch.Line("kubectl", "describe", "node", node))
}

// WayCut marks the error for callers that do not know its type.
func (e *nodeAwayError) WayCut() {}

// watchEvery is the time between two looks at the pod of a connection.
const watchEvery = 10 * time.Second

// watch drops the connection to a pod that is gone. Its streams need not end by themselves: requests that
// the pod had not answered waited forever, and so did the clients of a load.
func (t *Tunnel) watch(conn httpstream.Connection, pod *Pod) {
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-conn.CloseChan():
			return
		case <-time.After(watchEvery):
		}
		if t.w.gone(t.ctx, pod) {
			t.drop(conn)
			return
		}
	}
}

// gone reports whether a pod is known to exist no longer.
func (w *Workload) gone(ctx context.Context, pod *Pod) bool {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	list, err := w.list(ctx, "fieldSelector", "metadata.name="+pod.Metadata.Name)
	return err == nil && (len(list) == 0 || list[0].Metadata.UID != pod.Metadata.UID)
}

// pod returns the pod that requests should be sent to, which is ready.
func (t *Tunnel) pod(ctx context.Context) (*Pod, error) {
	if t.only != nil {
		about := &t.only.Metadata
		list, err := t.w.list(ctx, "fieldSelector", "metadata.name="+about.Name)
		switch {
		case err != nil:
			return nil, err
		case len(list) == 0 || list[0].Metadata.UID != about.UID:
			return nil, fmt.Errorf("pod %s is gone", about.Name)
		case list[0].adrift():
			return nil, &nodeAwayError{about.Name, list[0].Spec.NodeName}
		case !list[0].Ready():
			return nil, errors.New(list[0].State())
		}
		return &list[0], nil
	}
	o, err := t.w.Read(ctx)
	if err != nil {
		return nil, err
	}
	pods, err := t.w.Pods(ctx, o)
	switch {
	case err != nil:
		return nil, err
	case len(pods) == 0:
		return nil, fmt.Errorf("%s has no pods", t.w)
	case pods[0].adrift():
		return nil, &nodeAwayError{pods[0].Metadata.Name, pods[0].Spec.NodeName}
	case !pods[0].Ready():
		if why, _ := t.w.Trouble(ctx, &pods[0]); why != "" {
			return nil, fmt.Errorf("%s has no pod that is ready; %s", t.w, why)
		}
		return nil, fmt.Errorf("%s has no pod that is ready; %s", t.w, pods[0].State())
	}
	return &pods[0], nil
}

// connectWithin limits a connection to a pod, which takes long on a busy node.
const connectWithin = 20 * time.Second

// dialed connects to a pod, which the library does without a limit in time and without a context.
func dialed(ctx context.Context, d httpstream.Dialer) (httpstream.Connection, string, error) {
	type result struct {
		conn     httpstream.Connection
		protocol string
		err      error
	}
	done := make(chan result, 1)
	go func() {
		conn, protocol, err := d.Dial(forwardProtocol)
		done <- result{conn, protocol, err}
	}()
	limited, cancel := context.WithTimeoutCause(ctx, connectWithin, fmt.Errorf("no answer within %v", connectWithin))
	defer cancel()
	select {
	case r := <-done:
		return r.conn, r.protocol, r.err
	case <-limited.Done():
		go func() {
			if r := <-done; r.err == nil {
				_ = r.conn.Close()
			}
		}()
		return nil, "", context.Cause(limited)
	}
}

// stream opens the pair of streams that is one connection to a port of the pod.
func (t *Tunnel) stream(conn httpstream.Connection, port, request int) (httpstream.Stream, error) {
	h := http.Header{}
	h.Set(streamType, "error")
	h.Set(portHeader, strconv.Itoa(port))
	h.Set(requestID, strconv.Itoa(request))
	failure, err := conn.CreateStream(h)
	if err != nil {
		return nil, err
	}
	_ = failure.Close() // nothing is written to it
	h.Set(streamType, "data")
	data, err := conn.CreateStream(h)
	if err != nil {
		return nil, err
	}
	go func() {
		const longest = 4 << 10
		text, _ := io.ReadAll(io.LimitReader(failure, longest))
		conn.RemoveStreams(failure, data)
		if len(text) > 0 { // the server does not listen, or the pod has ended: choose again
			_ = data.Reset()
			t.drop(conn)
		}
	}()
	return data, nil
}
