// Package kube reads a server that runs in a Kubernetes cluster, and forwards requests to its pod. Objects
// are read and changed as the JSON that the API server has, so that fields of newer versions stay.
package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// Cluster is a connection to the API server of a cluster. It is safe for concurrent use.
type Cluster struct {
	Context string // of the kubeconfig, "" for the account of a pod
	Server  string // URL of the API server
	// Patience is how long requests are tried again while the API server cannot be reached.
	Patience  time.Duration
	namespace string // of objects that are named without one
	config    *rest.Config
	client    *rest.RESTClient
}

// manager is the name under which the API server records which fields rooftop set.
const manager = "rooftop"

// Connect reads the kubeconfig as kubectl does ($KUBECONFIG, ~/.kube/config, else the account of the pod that
// this runs in), with a context of it; "" is the current one. It contacts nothing.
func Connect(context string) (*Cluster, error) {
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{CurrentContext: context})
	config, err := loaded.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("there is no kubeconfig: set KUBECONFIG or create ~/.kube/config, as for kubectl")
	} else if err != nil {
		return nil, fmt.Errorf("the kubeconfig cannot be used: %w", err)
	}
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig cannot be used: %w", err)
	}
	if raw, err := loaded.RawConfig(); err == nil && context == "" {
		context = raw.CurrentContext
	}
	answers := runtime.NewScheme()
	metav1.AddToGroupVersion(answers, schema.GroupVersion{Version: "v1"})
	config.NegotiatedSerializer = serializer.NewCodecFactory(answers).WithoutConversion()
	config.UserAgent = manager
	config.Timeout = answerWithin
	config.QPS, config.Burst = 20, 40         // the library's own 5 requests a second delay the start by seconds
	config.WarningHandler = rest.NoWarnings{} // they would be written over the screen, as the library's log
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig cannot be used: %w", err)
	}
	return &Cluster{Context: context, Server: config.Host, namespace: namespace, config: config, client: client}, nil
}

// get reads an object or a list into out.
func (c *Cluster) get(ctx context.Context, path string, query map[string]string, out any) error {
	r := c.client.Get().AbsPath(path)
	for k, v := range query {
		r = r.Param(k, v)
	}
	return c.read(ctx, r, out)
}

// read sends a request and reads the answer into out.
func (c *Cluster) read(ctx context.Context, r *rest.Request, out any) error {
	for deadline := time.Now().Add(c.Patience); ; {
		answer := r.Do(ctx)
		text, err := answer.Raw()
		switch {
		case err != nil:
			err = answer.Error() // in the words of the API server
		case out != nil:
			err = json.Unmarshal(text, out)
		}
		if err == nil || !away(err) || ctx.Err() != nil || time.Now().After(deadline) {
			return c.explain(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(awayPoll):
		}
	}
}

// answerWithin is how long one request may take.
const answerWithin = 15 * time.Second

// awayPoll is the time from one try to the next while the API server cannot be reached.
const awayPoll = time.Second

// away reports whether an error may end by itself: the API server cannot be reached, or is starting.
func away(err error) bool {
	var network *net.OpError
	var slow net.Error
	return errors.As(err, &network) || errors.As(err, &slow) && slow.Timeout() || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err)
}

// explain returns an error in one sentence, with the next step where there is one.
func (c *Cluster) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the cluster does not allow it: %w; 'rooftop doctor --kube' names what is missing", err)
	case apierrors.IsConflict(err):
		return fmt.Errorf("someone else changed it at the same time: %w", err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the cluster at %s does not know this account: log in as for kubectl", c.Server)
	case away(err):
		return &AwayError{Server: c.Server, Err: err}
	}
	return err
}

// AwayError means that the API server of a cluster does not answer, which says nothing of what runs in it.
type AwayError struct {
	Server string // its URL
	Err    error
}

func (e *AwayError) Error() string {
	return fmt.Sprintf("the cluster's API server at %s does not answer: %v", e.Server, e.Err)
}
func (e *AwayError) Unwrap() error { return e.Err }

// WayCut marks the error for callers that do not know its type.
func (e *AwayError) WayCut() {}

// silentWithin is how long the API server may take to answer Silent.
const silentWithin = 3 * time.Second

// Silent returns an *AwayError if the API server does not answer now; nil if it does, whatever it says.
func (c *Cluster) Silent() error {
	ctx, cancel := context.WithTimeout(context.Background(), silentWithin)
	defer cancel()
	if _, err := c.client.Get().AbsPath("/version").Do(ctx).Raw(); err != nil && (away(err) || ctx.Err() != nil) {
		return &AwayError{Server: c.Server, Err: err}
	}
	return nil
}

// send sends a request with an object as JSON, and reads the answer into out.
func (c *Cluster) send(ctx context.Context, r *rest.Request, object, out any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return c.read(ctx, r.SetHeader("Content-Type", "application/json").Body(text), out)
}

// patch sends a JSON patch, and reads the new object into out.
func (c *Cluster) patch(ctx context.Context, path string, patch []Operation, out any) error {
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return c.read(ctx, c.client.Patch(types.JSONPatchType).AbsPath(path).Param("fieldManager", manager).Body(text), out)
}

// Operation is one step of a JSON patch (RFC 6902). A test whose value is null holds where there is nothing.
type Operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// Verb is something that an account must be allowed to do.
type Verb struct {
	Verb, Group, Resource, Subresource string
	Name                               string // of the one object that it is for, "" if that is not known before
	For                                string // what rooftop does with it
	Canary                             bool   // only --canary takes it
	Allowed                            bool
	Reason                             string // why it is not allowed, in the cluster's words
}

// String returns a verb as kubectl auth can-i takes it: "create pods/portforward".
func (v *Verb) String() string {
	name := v.Resource
	if v.Group != "" {
		name += "." + v.Group
	}
	return v.Verb + " " + strings.TrimSuffix(name+"/"+v.Subresource, "/")
}

// ask asks the API server whether the account may use a verb on a workload and what belongs to it.
func (c *Cluster) ask(ctx context.Context, namespace string, v *Verb) error {
	review := map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
		"spec": map[string]any{"resourceAttributes": map[string]string{
			"namespace": namespace, "verb": v.Verb, "group": v.Group, "resource": v.Resource, "subresource": v.Subresource, "name": v.Name,
		}},
	}
	var answer struct {
		Status struct {
			Allowed                 bool
			Reason, EvaluationError string
		}
	}
	if err := c.send(ctx, c.client.Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"), review, &answer); err != nil {
		return err
	}
	v.Allowed, v.Reason = answer.Status.Allowed, cmp.Or(answer.Status.Reason, answer.Status.EvaluationError)
	return nil
}
