package kube

import (
	"strings"
	"testing"
)

func TestSelections(t *testing.T) {
	c := &Cluster{namespace: "llm"}
	for text, want := range map[string]string{
		"deployment/vllm": "llm deployment/vllm ", "prod/sts/vllm": "prod statefulset/vllm ", "app=vllm": "llm / app=vllm", "prod/app=vllm,tier=gpu": "prod / app=vllm,tier=gpu",
		"app.kubernetes.io/name=vllm": "llm / app.kubernetes.io/name=vllm", "prod/app.kubernetes.io/name=vllm": "prod / app.kubernetes.io/name=vllm",
		"vllm": "names no workload", "app=a b": "selects no pods",
	} {
		s, err := c.Select(text)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = s.w.Namespace + " " + s.w.String() + " " + s.labels
		}
		if !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// Each pod of a workload, or with labels, is a server with the container and the launch of the pod.
func TestReplicas(t *testing.T) {
	const args = `["--model","m","--max-num-seqs","8"]`
	beside := strings.Replace(pod("b-2", args, ready), `"containers":[`, `"containers":[{"name":"proxy","command":["nginx"]},`, 1)
	a := api{
		objectPath: object(`{"name":"vllm","args":` + args + `}`),
		"/api/v1/namespaces/llm/pods": `{"items":[` + strings.Join([]string{
			beside, pod("a-1", args, `{"phase":"Pending"}`), pod("evicted-3", args, `{"phase":"Failed"}`),
			strings.Replace(pod("alone-4", args, ready), `"ownerReferences"`, `"other"`, 1),
		}, ",") + `]}`,
	}
	for text, want := range map[string]string{
		"deployment/vllm": "a-1 deployment/vllm vllm; b-2 deployment/vllm vllm; ",
		"app=vllm":        "a-1 deployment/vllm vllm; alone-4  vllm; b-2 deployment/vllm vllm; ",
	} {
		s, err := a.workload(t, "deployment/vllm").Select(text)
		must(t, err)
		list, err := s.Replicas(t.Context())
		must(t, err)
		got := ""
		for i := range list {
			r := &list[i]
			got += r.Pod.Metadata.Name + " " + r.Owner() + " " + r.Workload.Container + "; "
			if config := r.Workload.PodConfig(&r.Pod); config == nil || !strings.Contains(config.String(), "--max-num-seqs 8") {
				t.Errorf("%s: launch %v", r.Pod.Metadata.Name, config)
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if s, err := (api{}).workload(t, "deployment/vllm").Select("deployment/vllm"); err != nil {
		t.Error(err)
	} else if _, err := s.Replicas(t.Context()); err == nil || !strings.Contains(err.Error(), "there is no deployment/vllm") {
		t.Errorf("of a workload that is not there: %v", err)
	}
}
