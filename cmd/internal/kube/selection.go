package kube

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Selection is pods of one namespace, each of which runs a server.
type Selection struct {
	w      *Workload // whose pods they are; without a name if labels select them
	labels string
}

// Select reads [NAMESPACE/]KIND/NAME of a workload, or [NAMESPACE/]KEY=VALUE[,KEY=VALUE…] of the labels of pods.
func (c *Cluster) Select(text string) (*Selection, error) {
	if !strings.Contains(text, "=") {
		w, err := c.Parse(text)
		return &Selection{w: w}, err
	}
	namespace, selector := c.namespace, text
	// The key of a label may have a prefix with a slash, whose name has a dot: app.kubernetes.io/name=vllm.
	if first, rest, ok := strings.Cut(text, "/"); ok && !strings.ContainsAny(first, ".=") {
		namespace, selector = first, rest
	}
	if _, err := labels.Parse(selector); err != nil || namespace == "" {
		return nil, fmt.Errorf("%q selects no pods: write [NAMESPACE/]KEY=VALUE, as in llm/app=vllm", text)
	}
	return &Selection{w: &Workload{Cluster: c, kind: &kind{}, Namespace: namespace}, labels: selector}, nil
}

// Replica is a pod of a selection, with a workload whose container is the pod's.
type Replica struct {
	Workload *Workload
	Pod      Pod
}

// Replicas returns the pods of a selection that are not over, by name.
func (s *Selection) Replicas(ctx context.Context) ([]Replica, error) {
	var pods []Pod
	var err error
	if s.labels != "" {
		pods, err = s.w.list(ctx, "labelSelector", s.labels)
	} else {
		var o *Object
		if o, err = s.w.Read(ctx); err == nil {
			pods, err = s.w.Pods(ctx, o)
		}
	}
	if err != nil {
		return nil, err
	}
	var list []Replica
	for i := range pods {
		p := &pods[i]
		if p.Metadata.DeletionTimestamp != nil || p.Over() || len(p.Spec.Containers) == 0 {
			continue
		}
		w := *s.w
		w.Container = cmp.Or(w.Container, p.serving().Name)
		list = append(list, Replica{Workload: &w, Pod: *p})
	}
	slices.SortFunc(list, func(a, b Replica) int { return cmp.Compare(a.Pod.Metadata.Name, b.Pod.Metadata.Name) })
	return list, nil
}

// serving returns the container of a pod that starts vLLM, or else the first one.
func (p *Pod) serving() *Container {
	for i := range p.Spec.Containers {
		if p.Spec.Containers[i].config() != nil {
			return &p.Spec.Containers[i]
		}
	}
	return &p.Spec.Containers[0]
}

// Owner returns the workload that made a pod, as deployment/NAME; "" if none did.
func (r *Replica) Owner() string {
	if r.Workload.Name != "" {
		return r.Workload.String()
	}
	by := metav1.GetControllerOf(&r.Pod.Metadata)
	if by == nil {
		return ""
	}
	if name := by.Name; by.Kind == "ReplicaSet" { // of a Deployment, whose name a hash follows
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			return "deployment/" + name[:i]
		}
	}
	return strings.ToLower(by.Kind) + "/" + by.Name
}
