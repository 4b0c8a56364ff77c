package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/rand"
)

// CanaryLabel is on canary pods, which run beside those of a workload and belong to it.
const CanaryLabel = "rooftop.dev/canary"

// Canaries returns the canary pods of a workload, those that are being deleted too.
func (w *Workload) Canaries(ctx context.Context, o *Object) ([]Pod, error) {
	list, err := w.list(ctx, "labelSelector", CanaryLabel)
	return slices.DeleteFunc(list, func(p Pod) bool {
		return !slices.ContainsFunc(p.Metadata.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == o.Metadata.UID })
	}), err
}

// NewPod is a pod to create. Its specification may have any field.
type NewPod struct {
	APIVersion string                     `json:"apiVersion"`
	Kind       string                     `json:"kind"`
	Metadata   metav1.ObjectMeta          `json:"metadata"`
	Spec       map[string]json.RawMessage `json:"spec"`
}

// ownLabels are labels by which controllers know their pods.
var ownLabels = []string{"pod-template-hash", "controller-revision-hash", "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"}

// NewCanary returns a canary pod: one of the object's template, whose container of the server has the command
// line and the environment of another one, with an annotation. Services take it for one of the object's pods,
// and controllers do not. It ends with its server, so that a crash is seen, and is deleted with the object.
func (w *Workload) NewCanary(o *Object, set *Container, annotation, value string) (*NewPod, error) {
	pod := new(NewPod)
	var containers []map[string]json.RawMessage
	err := json.Unmarshal(o.Spec.Template.Text, pod)
	if err == nil {
		err = json.Unmarshal(pod.Spec["containers"], &containers)
	}
	_, i := o.Container(w.Container)
	if err != nil {
		return nil, fmt.Errorf("the template of %s: %w", w, err)
	}
	for name, field := range map[string]json.RawMessage{"command": set.Command, "args": set.Args, "env": set.Env} {
		delete(containers[i], name)
		if field != nil {
			containers[i][name] = field
		}
	}
	if pod.Spec["containers"], err = json.Marshal(containers); err != nil {
		return nil, err
	}
	pod.APIVersion, pod.Kind, pod.Spec["restartPolicy"] = "v1", "Pod", json.RawMessage(`"Never"`)
	maps.DeleteFunc(pod.Metadata.Labels, func(key, _ string) bool { return slices.Contains(ownLabels, key) })
	pod.Metadata = metav1.ObjectMeta{
		Name: w.Name + "-canary-" + rand.String(5), Labels: pod.Metadata.Labels, Annotations: pod.Metadata.Annotations,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: o.APIVersion, Kind: o.Kind, Name: w.Name, UID: o.Metadata.UID}},
	}
	metav1.SetMetaDataLabel(&pod.Metadata, CanaryLabel, "true")
	metav1.SetMetaDataAnnotation(&pod.Metadata, annotation, value)
	return pod, nil
}

// Start makes a pod. It can be repeated.
func (w *Workload) Start(ctx context.Context, pod *NewPod) error {
	err := w.send(ctx, w.client.Post().AbsPath("/api/v1/namespaces/"+w.Namespace+"/pods"), pod, nil)
	if apierrors.IsAlreadyExists(err) {
		return nil // the first answer was lost
	}
	return err
}

// Services returns the names of the Services that send requests to a pod.
func (w *Workload) Services(ctx context.Context, pod *NewPod) ([]string, error) {
	var list struct {
		Items []struct {
			Metadata metav1.ObjectMeta
			Spec     struct{ Selector map[string]string }
		}
	}
	if err := w.get(ctx, "/api/v1/namespaces/"+w.Namespace+"/services", nil, &list); err != nil {
		return nil, fmt.Errorf("list the Services of %s: %w", w.Namespace, err)
	}
	var names []string
	for i := range list.Items {
		if s := &list.Items[i]; len(s.Spec.Selector) > 0 && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(pod.Metadata.Labels)) {
			names = append(names, s.Metadata.Name)
		}
	}
	return names, nil
}
