package kube

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// gpuLabels are labels of nodes that name their GPUs: of NVIDIA's GPU feature discovery, and of GKE.
var gpuLabels = []string{"nvidia.com/gpu.product", "cloud.google.com/gke-accelerator"}

// GPU returns the name of the GPUs of the node that a pod runs on, and the label that says so; "" if none does
// or the pod asks for no GPU.
func (w *Workload) GPU(ctx context.Context, p *Pod) (name, label string, err error) {
	if c := p.container(w.Container); c == nil || c.GPUs() == "" || p.Spec.NodeName == "" {
		return "", "", nil
	}
	var node struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if err := w.get(ctx, "/api/v1/nodes/"+p.Spec.NodeName, nil, &node); err != nil {
		return "", "", err
	}
	for _, label := range gpuLabels {
		if name := node.Metadata.Labels[label]; name != "" {
			return name, label, nil
		}
	}
	return "", "", nil
}
