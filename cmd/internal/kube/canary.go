package kube

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// CanaryLabel is on canary pods, which run beside those of a workload and belong to it, with its name.
const CanaryLabel = "rooftop.dev/canary"

// Canaries returns the canary pods of a workload, those that are being deleted too.
func (w *Workload) Canaries(ctx context.Context, o *Object) ([]Pod, error) {
	list, err := w.list(ctx, "labelSelector", CanaryLabel+"="+w.Name)
	return slices.DeleteFunc(list, func(p Pod) bool {
		return !slices.ContainsFunc(p.Metadata.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == o.Metadata.UID })
	}), err
}

// Start makes a pod. It can be repeated.
func (w *Workload) Start(ctx context.Context, pod any) error {
	err := w.send(ctx, w.client.Post().AbsPath("/api/v1/namespaces/"+w.Namespace+"/pods"), pod, nil)
	if apierrors.IsAlreadyExists(err) {
		return nil // the first answer was lost
	}
	return err
}

// Services returns the names of the Services that send requests to pods with these labels.
func (w *Workload) Services(ctx context.Context, podLabels map[string]string) ([]string, error) {
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
		if s := &list.Items[i]; len(s.Spec.Selector) > 0 && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(podLabels)) {
			names = append(names, s.Metadata.Name)
		}
	}
	return names, nil
}
