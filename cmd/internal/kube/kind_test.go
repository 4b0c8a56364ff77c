package kube

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// operated is an API server with an object of an operator and pods with arguments, by name. It records what is asked
// of the pods, and applies nothing.
type operated struct {
	object  string
	users   string // InferenceServices
	pods    map[string]string
	asked   string
	refuses bool
}

func (a *operated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	text := a.object
	switch {
	case strings.HasSuffix(r.URL.Path, "/pods"):
		a.asked = r.URL.Query().Get("labelSelector")
		var list []string
		for name, args := range a.pods {
			list = append(list, strings.Replace(pod(name, args, ready), `"metadata":{`, `"metadata":{"uid":"`+name+`",`, 1))
		}
		text = `{"items":[` + strings.ReplaceAll(strings.Join(list, ","), `"name":"vllm"`, `"name":"kserve-container"`) + `]}`
	case strings.HasSuffix(r.URL.Path, "/inferenceservices"):
		text = `{"items":[` + a.users + `]}`
	case r.Method == http.MethodPatch && a.refuses:
		w.WriteHeader(http.StatusUnprocessableEntity)
		text = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`
	}
	_, _ = w.Write([]byte(text))
}

func TestObjectsOfOperatorsHaveTheirContainersElsewhere(t *testing.T) {
	const args = `"args":["--model","m","--max-num-seqs","8"]`
	for name, c := range map[string]struct {
		workload, spec, users string
		container, path       string // or the error in place of the container
		pods                  string
	}{
		"a model":   {"isvc/chat", `{"predictor":{"model":{"runtime":"rt",` + args + `}}}`, "", "kserve-container", "/spec/predictor/model", "component=predictor,serving.kserve.io/inferenceservice=chat"},
		"own image": {"inferenceservice/chat", `{"predictor":{"containers":[{"name":"a"},{"name":"b",` + args + `}]}}`, "", "b", "/spec/predictor/containers/1", "component=predictor,serving.kserve.io/inferenceservice=chat"},
		"neither":   {"isvc/chat", `{"predictor":{"triton":{}}}`, "", "has no container at spec.predictor.model or spec.predictor.containers", "", ""},
		"elsewhere": {"isvc/chat", `{"predictor":{"model":{"runtime":"rt"}}}`, "", "name that, as servingruntime/NAME", "", ""},
		"a runtime": {"servingruntime/rt", `{"containers":[{"name":"kserve-container",` + args + `}]}`, `{"metadata":{"name":"a"},"spec":{"predictor":{"model":{"runtime":"rt"}}}},{"metadata":{"name":"b"}}`, "kserve-container", "/spec/containers/0", "component=predictor,serving.kserve.io/inferenceservice=a"},
		"of two": {
			"servingruntime/rt", `{"containers":[{"name":"kserve-container",` + args + `}]}`,
			`{"metadata":{"name":"a"},"spec":{"predictor":{"model":{"runtime":"rt"}}}},{"metadata":{"name":"b"},"spec":{"predictor":{"model":{"runtime":"rt"}}}}`, "is of 2 InferenceServices (a, b)", "", "",
		},
		"a group":     {"lws/g", `{"leaderWorkerTemplate":{"leaderTemplate":{"spec":{"containers":[{"name":"l",` + args + `}]}},"workerTemplate":{"spec":{"containers":[{"name":"w"}]}}}}`, "", "l", "/spec/leaderWorkerTemplate/leaderTemplate/spec/containers/0", "leaderworkerset.sigs.k8s.io/name=g,leaderworkerset.sigs.k8s.io/worker-index=0"},
		"all equal":   {"lws/g", `{"leaderWorkerTemplate":{"workerTemplate":{"spec":{"containers":[{"name":"w",` + args + `}]}}}}`, "", "w", "/spec/leaderWorkerTemplate/workerTemplate/spec/containers/0", "leaderworkerset.sigs.k8s.io/name=g,leaderworkerset.sigs.k8s.io/worker-index=0"},
		"of llm-d's":  {"llmisvc/q", `{"template":{"containers":[{"name":"main",` + args + `}]}}`, "", "main", "/spec/template/containers/0", "app.kubernetes.io/component in (llminferenceservice-workload,llminferenceservice-workload-leader),app.kubernetes.io/name=q"},
		"by defaults": {"llmisvc/q", `{"model":{"uri":"hf://m"}}`, "", "has no container at spec.template.containers", "", ""},
	} {
		a := &operated{object: `{"metadata":{"name":"x","generation":2},"spec":` + c.spec + `}`, users: c.users, pods: map[string]string{"p-1": `[]`}}
		w := workloadOf(t, a, c.workload)
		o, err := w.Read(t.Context())
		if err != nil {
			if c.path != "" || !strings.Contains(err.Error(), c.container) {
				t.Errorf("%s: %v, want %q", name, err, c.container)
			}
			continue
		}
		_, i := o.Container(w.Container)
		if w.Container != c.container || o.ContainerPath(i) != c.path || a.asked != c.pods {
			t.Errorf("%s: container %s at %s, pods %s", name, w.Container, o.ContainerPath(i), a.asked)
		}
	}
}

// An operator may put its own arguments before those of the object.
func TestPodsOfOperatorsAreCurrent(t *testing.T) {
	for name, c := range map[string]struct {
		args string // of the object
		pods map[string]string
		want bool
	}{
		"all of it":     {`["--model","m","--max-num-seqs","8"]`, map[string]string{"p-1": `["--port","80","--model","m","--max-num-seqs","8"]`}, true},
		"exactly":       {`["--model","m"]`, map[string]string{"p-1": `["--model","m"]`}, true},
		"filled in":     {`["--served-model-name={{.Name}}","--model","m"]`, map[string]string{"p-1": `["--served-model-name=chat","--model","m"]`}, true},
		"another value": {`["--model","m","--max-num-seqs","8"]`, map[string]string{"p-1": `["--port","80","--model","m","--max-num-seqs","4"]`}, false},
		"one of two":    {`["--model","m"]`, map[string]string{"p-1": `["--model","m"]`, "p-2": `["--model","n"]`}, false},
		"no pod":        {`["--model","m"]`, nil, false},
	} {
		a := &operated{object: `{"metadata":{"name":"chat","generation":2},"spec":{"predictor":{"model":{"args":` + c.args + `}}}}`, pods: c.pods}
		o, err := workloadOf(t, a, "isvc/chat").Read(t.Context())
		if err != nil || o.Rolled() != c.want {
			t.Errorf("%s: %v, %v", name, o.Rolled(), err)
		}
	}
}

// Without its last arguments the old pods match the object too, but only other pods can be the ones that it asks for.
func TestPodsBeforeAChangeAreNotAfterIt(t *testing.T) {
	with := func(args string) string {
		return `{"metadata":{"name":"chat"},"spec":{"predictor":{"model":{"args":` + args + `}}}}`
	}
	a := &operated{object: with(`["--model","m","--seed","1"]`), pods: map[string]string{"p-1": `["--model","m","--seed","1"]`}}
	w := workloadOf(t, a, "isvc/chat")
	rolled := func(want bool, when string) {
		t.Helper()
		if o, err := w.Read(t.Context()); err != nil || o.Rolled() != want {
			t.Errorf("%s: %v, %v", when, !want, err)
		}
	}
	change := []Operation{{Op: "add", Path: "/spec/predictor/model/args", Value: json.RawMessage(`["--model","m"]`)}}
	rolled(true, "before")
	a.refuses = true
	if _, err := w.Patch(t.Context(), change); err == nil {
		t.Error("a refused patch is not an error")
	}
	rolled(true, "after a change that was refused")
	a.refuses = false
	if _, err := w.Patch(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	a.object = with(`["--model","m"]`)
	rolled(false, "with the pod before the change")
	a.pods = map[string]string{"p-2": `["--model","m"]`}
	rolled(true, "with a pod after it")
	if _, err := w.Patch(t.Context(), []Operation{{Op: "remove", Path: "/metadata/annotations/a"}}); err != nil {
		t.Fatal(err)
	}
	rolled(true, "after a change of an annotation")
}
