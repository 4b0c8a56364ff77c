//go:build e2e && linux

package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Objects for which operators make pods: their definitions are written here and served by the real API server. A few
// lines replace the operator: they keep a Deployment as the object says.

// operated has the kinds with the path of their objects in the API.
var operated = map[string]string{
	"InferenceService": "/apis/serving.kserve.io/v1beta1/namespaces/default/",
	"ServingRuntime":   "/apis/serving.kserve.io/v1alpha1/namespaces/default/",
	"LeaderWorkerSet":  "/apis/leaderworkerset.x-k8s.io/v1/namespaces/default/",
}

// operatorArgs are the arguments that the operator puts before those of an object.
var operatorArgs = map[string][]string{"InferenceService": {"--sim-startup-time=400ms"}}

// define lets the API server serve a kind, with any fields.
func (c cluster) define(t *testing.T, kind string) {
	t.Helper()
	parts := strings.Split(operated[kind], "/")
	group, version, plural := parts[2], parts[3], strings.ToLower(kind)+"s"
	c.request(t, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/json", fmt.Sprintf(`{
 "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "%[1]s.%[2]s", "annotations": {"api-approved.kubernetes.io": "unapproved, a test"}},
 "spec": {"group": "%[2]s", "scope": "Namespaced", "names": {"plural": "%[1]s", "singular": "%[3]s", "kind": "%[4]s"}, "versions": [{"name": "%[5]s", "served": true, "storage": true,
  "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}, "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]}}`,
		plural, group, strings.ToLower(kind), kind, version))
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		if _, _, err := c.try("GET", operated[kind]+plural, "application/json", ""); err == nil {
			return
		} else if time.Since(began) > 3*time.Minute {
			t.Fatalf("%s is not served: %v", kind, err)
		}
	}
}

// operate makes an object from the text of its specification, which has a container, and a replacement for its
// operator: pods with the given labels, whose container has a name.
func (c cluster) operate(t *testing.T, kind, name, spec, container, labels string) *deployed {
	t.Helper()
	made := c.create(t, "Deployment", name, 8000, 1, "10m")
	as := made.container(made.object())
	launch, err := json.Marshal(map[string]any{"command": as["command"], "args": as["args"]})
	must(t, err)
	made.request(t, "PATCH", made.path(), "application/json-patch+json", `[{"op":"replace","path":"/spec/template/spec/containers/0/name","value":"`+container+`"},{"op":"add","path":"/spec/template/metadata/labels","value":{"app":"`+name+`",`+labels+`}}]`)
	d := &deployed{c, t, kind, name}
	text := fmt.Sprintf(`{"apiVersion": %q, "kind": %q, "metadata": {"name": %q, "annotations": {"note": "<&>"}}, "spec": %s}`,
		strings.TrimPrefix(strings.TrimSuffix(operated[kind], "/namespaces/default/"), "/apis/"), kind, name, strings.ReplaceAll(spec, "LAUNCH", strings.Trim(string(launch), "{}")))
	d.request(t, "POST", path.Dir(d.path()), "application/json", text)
	t.Cleanup(func() { d.request(t, "DELETE", d.path(), "application/json", "") })
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for seen := ""; ; {
			if o, _, err := c.try("GET", d.path(), "application/json", ""); err == nil {
				args, _ := json.Marshal(slices.Concat(operatorArgs[kind], argsIn(o["spec"])))
				if text := string(args); text != seen {
					if _, _, err := c.try("PATCH", made.path(), "application/json-patch+json", `[{"op":"replace","path":"/spec/template/spec/containers/0/args","value":`+text+`}]`); err == nil {
						seen = text
					}
				}
			}
			select {
			case <-stop:
				return
			case <-time.After(time.Second):
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-done })
	d.offer(fmt.Sprintf("until %s load --kube %s --clients 12 --prompt-tokens 64 --output-tokens 32-64 --duration 0; do sleep 0.5; done", c.binary, d.workload()), "load --kube "+d.workload()+" ")
	for began := time.Now(); ; time.Sleep(300 * time.Millisecond) {
		text, _ := json.Marshal(made.object()["spec"])
		if status, _ := made.object()["status"].(map[string]any); strings.Contains(string(text), strings.Join(operatorArgs[kind], "")) && status["availableReplicas"] == float64(1) && status["updatedReplicas"] == float64(1) && status["replicas"] == float64(1) {
			return d
		}
		if time.Since(began) > 3*time.Minute {
			t.Fatalf("%s is not up: %v", name, made.pods())
		}
	}
}

// argsIn returns the arguments of the first container in a specification.
func argsIn(v any) (args []string) {
	switch v := v.(type) {
	case map[string]any:
		if list, has := v["args"].([]any); has {
			for _, a := range list {
				args = append(args, fmt.Sprint(a))
			}
			return args
		}
		for _, name := range []string{"predictor", "model", "leaderWorkerTemplate", "leaderTemplate", "spec", "containers"} {
			if args = argsIn(v[name]); args != nil {
				return args
			}
		}
	case []any:
		if len(v) > 0 {
			return argsIn(v[0])
		}
	}
	return nil
}

func (c cluster) testOperators(t *testing.T) {
	for kind := range operated {
		c.define(t, kind)
	}
	t.Run("operator, kept", func(t *testing.T) {
		t.Parallel()
		d := c.operate(t, "InferenceService", "chat", `{"predictor": {"minReplicas": 1, "model": {"modelFormat": {"name": "vllm"}, "runtime": "none", LAUNCH}}}`,
			"kserve-container", `"serving.kserve.io/inferenceservice":"chat","component":"predictor"`)
		before := d.stated()
		out, err := d.tune().CombinedOutput()
		if strings.Contains(string(out), "rooftop was not tested") == false {
			t.Errorf("it is not said that it was not tested with the operator: %v\n%s", err, out)
		}
		after := d.stated()
		was, is := argsIn(before["spec"]), argsIn(after["spec"])
		if cmp.Equal(was, is) || !strings.Contains(string(out), `"kept"`) {
			t.Errorf("it starts %v: %v\n%s", is, err, out)
		}
		model := after["spec"].(map[string]any)["predictor"].(map[string]any)["model"].(map[string]any)
		model["args"] = before["spec"].(map[string]any)["predictor"].(map[string]any)["model"].(map[string]any)["args"]
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("more than its arguments differs:\n%s", diff)
		}
		t.Logf("kept %v", is)
	})
	t.Run("operator, interrupted", func(t *testing.T) {
		t.Parallel()
		d := c.operate(t, "LeaderWorkerSet", "group", `{"replicas": 1, "leaderWorkerTemplate": {"size": 1, "leaderTemplate": {"spec": {"containers": [{"name": "vllm", LAUNCH}]}}, "workerTemplate": {"spec": {"containers": []}}}}`,
			"vllm", `"leaderworkerset.sigs.k8s.io/name":"group","leaderworkerset.sigs.k8s.io/worker-index":"0"`)
		before := d.stated()
		cmd, events := untilEvent(t, d.tune(), "server-up")
		if now := d.stated(); cmp.Equal(argsIn(before["spec"]), argsIn(now["spec"])) {
			t.Errorf("it starts %v", argsIn(now["spec"]))
		}
		d.output("pkill", "-INT", "-f", "tune .*"+d.workload())
		_, _ = io.Copy(io.Discard, events)
		_ = cmd.Wait()
		d.unchanged(before, "interrupted")
	})
	t.Run("operator, refused", func(t *testing.T) {
		t.Parallel()
		for _, o := range []struct{ kind, name, spec, want string }{
			{"InferenceService", "bare", `{"predictor": {"triton": {"args": ["--x"]}}}`, "has no container at spec.predictor.model or spec.predictor.containers"},
			{"InferenceService", "short", `{"predictor": {"model": {"runtime": "rt"}}}`, "name that, as servingruntime/NAME"},
			{"ServingRuntime", "rt2", `{"containers": [{"name": "kserve-container", "args": ["--model", "m"]}]}`, "is of 0 InferenceServices"},
		} {
			d := &deployed{c, t, o.kind, o.name}
			d.request(t, "POST", path.Dir(d.path()), "application/json", fmt.Sprintf(`{"apiVersion": %q, "kind": %q, "metadata": {"name": %q}, "spec": %s}`,
				strings.TrimPrefix(strings.TrimSuffix(operated[o.kind], "/namespaces/default/"), "/apis/"), o.kind, o.name, o.spec))
			out, err := d.tune().CombinedOutput()
			if err == nil || !strings.Contains(string(out), o.want) {
				t.Errorf("%s: %v, %q is not said:\n%s", d.workload(), err, o.want, out)
			}
		}
	})
}
