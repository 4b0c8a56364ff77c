package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/httpstream"
)

// api is an API server with a few answers, as JSON by path; it answers others with 404.
type api map[string]string

func (a api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	text, known := a[r.URL.Path]
	if !known {
		w.WriteHeader(http.StatusNotFound)
		text = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
	}
	_, _ = w.Write([]byte(text))
}

// workload returns the workload of a name in a cluster with these answers.
func (a api) workload(t *testing.T, name string) *Workload {
	t.Helper()
	return workloadOf(t, a, name)
}

// workloadOf returns the workload of a name in the cluster of an API server.
func workloadOf(t *testing.T, api http.Handler, name string) *Workload {
	t.Helper()
	s := httptest.NewServer(api)
	t.Cleanup(s.Close)
	config := filepath.Join(t.TempDir(), "config")
	text := `{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":"` + s.URL + `"}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"","namespace":"llm"}}]}`
	must(t, os.WriteFile(config, []byte(text), 0o600))
	t.Setenv("KUBECONFIG", config)
	c, err := Connect("")
	must(t, err)
	w, err := c.Parse(name)
	must(t, err)
	return w
}

func TestWorkloadsAreNamedAsForKubectl(t *testing.T) {
	c := &Cluster{namespace: "llm"}
	for text, want := range map[string]string{
		"deployment/vllm": "llm deployment/vllm", "deploy/vllm": "llm deployment/vllm", "Deployments/vllm": "llm deployment/vllm",
		"sts/vllm": "llm statefulset/vllm", "prod/deployment/vllm": "prod deployment/vllm",
		"vllm": "names no workload", "deployment/": "names no workload", "a/b/c/d": "names no workload", "daemonset/vllm": "llminferenceservice or leaderworkerset",
		"isvc/chat": "llm inferenceservice/chat", "LeaderWorkerSets/g": "llm leaderworkerset/g",
	} {
		w, err := c.Parse(text)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = w.Namespace + " " + w.String()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

const objectPath = "/apis/apps/v1/namespaces/llm/deployments/vllm"

// object returns a Deployment of containers.
func object(containers string) string {
	return `{"metadata":{"name":"vllm","generation":2},"spec":{"replicas":1,"selector":{"matchLabels":{"app":"vllm"}},"template":{"spec":{"containers":[` + containers + `]}}}}`
}

func TestTheServersContainerIsFound(t *testing.T) {
	for name, c := range map[string]struct{ containers, want string }{
		"an image that starts vLLM": {`{"name":"proxy","args":["--upstream","x"]},{"name":"server","args":["--model","m","--max-num-seqs","8"]}`, "server"},
		"a command":                 {`{"name":"server","command":["vllm","serve","m"]}`, "server"},
		"a script":                  {`{"name":"server","command":["/bin/sh","-c"],"args":["vllm serve m --max-num-seqs 8"]}`, "server"},
		"none":                      {`{"name":"proxy","command":["nginx"]}`, "starts no inference server"},
		"two":                       {`{"name":"a","command":["vllm","serve","m"]},{"name":"b","command":["vllm","serve","n"]}`, "several servers"},
	} {
		w := api{objectPath: object(c.containers)}.workload(t, "deployment/vllm")
		_, err := w.Read(t.Context())
		got := w.Container
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	w := api{}.workload(t, "deployment/vllm")
	if _, err := w.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "there is no deployment/vllm in the namespace llm") {
		t.Errorf("of an object that is not there: %v", err)
	}
}

// pod returns a pod of a status, with the arguments of its container.
func pod(name, args, status string) string {
	return `{"metadata":{"name":"` + name + `","ownerReferences":[{"kind":"ReplicaSet","name":"vllm-0","uid":"r","controller":true}],"creationTimestamp":"2026-01-0` + name[len(name)-1:] + `T00:00:00Z"},"spec":{"containers":[{"name":"vllm","args":` + args + `}]},"status":` + status + `}`
}

const ready = `{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}`

func TestRequestsGoToTheNewestPodThatIsReady(t *testing.T) {
	const now, before = `["--model","m","--max-num-seqs","8"]`, `["--model","m"]`
	a := api{
		objectPath: object(`{"name":"vllm","args":` + now + `}`),
		"/api/v1/namespaces/llm/pods": `{"items":[` + strings.Join([]string{
			strings.Replace(pod("others-4", now, ready), "vllm-0", "vllm-large-0", 1), strings.Replace(pod("others-5", now, ready), "ReplicaSet", "StatefulSet", 1),
			pod("starting-9", now, `{"phase":"Pending"}`), pod("old-1", before, ready), pod("older-2", now, ready), pod("newest-3", now, ready),
		}, ",") + `]}`,
	}
	w := a.workload(t, "deployment/vllm")
	o, err := w.Read(t.Context())
	must(t, err)
	pods, err := w.Pods(t.Context(), o)
	must(t, err)
	var names []string
	for i := range pods {
		names = append(names, pods[i].Metadata.Name)
	}
	if got := strings.Join(names, " "); got != "newest-3 older-2 old-1 starting-9" {
		t.Errorf("in the order %s", got)
	}
	if pods[2].Current || !pods[0].Current {
		t.Error("pods of another template are taken for those of this one")
	}
	if pods, err = a.workload(t, "statefulset/vllm").Pods(t.Context(), o); err != nil || len(pods) > 0 {
		t.Errorf("%v, %d pods of the Deployment are taken for those of a StatefulSet of its name", err, len(pods))
	}
}

func TestTroubleOfPodsIsOneSentence(t *testing.T) {
	a := api{"/api/v1/namespaces/llm/pods/p-1/log": "INFO loading\nValueError: No available memory for the cache blocks.\n"}
	w := a.workload(t, "deployment/vllm")
	waiting := func(reason, message string) string {
		return `{"phase":"Pending","containerStatuses":[{"name":"vllm","state":{"waiting":{"reason":"` + reason + `","message":"` + message + `"}}}]}`
	}
	for name, c := range map[string]struct {
		status, want string
		hopeless     bool
	}{
		"unschedulable": {`{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/1 nodes are available: 1 Insufficient nvidia.com/gpu."}]}`, "no node can run it: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu", false},
		"wrong image":   {waiting("ImagePullBackOff", `Back-off pulling image \"vlm:1\"`), `it does not start: ImagePullBackOff: Back-off pulling image "vlm:1"`, true},
		"no secret":     {waiting("CreateContainerConfigError", `secret \"hf\" not found`), `CreateContainerConfigError: secret "hf" not found`, true},
		"crashed":       {`{"phase":"Running","containerStatuses":[{"name":"vllm","restartCount":1,"state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"exitCode":1,"reason":"Error"}}}]}`, "ValueError: No available memory for the cache blocks. (it ended with exit status 1)", true},
		"out of memory": {`{"phase":"Running","containerStatuses":[{"name":"vllm","restartCount":1,"state":{"running":{}},"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]}`, "it was killed because memory ran out (OOMKilled)", true},
		"evicted":       {`{"phase":"Failed","reason":"Evicted","message":"The node was low on resource: memory."}`, "", false}, // another one is made
		"starting":      {waiting("ContainerCreating", ""), "", false},
		"ready":         {ready, "", false},
	} {
		var p Pod
		must(t, json.Unmarshal([]byte(pod("p-1", "[]", c.status)), &p))
		got, hopeless := w.Trouble(t.Context(), &p)
		if !strings.Contains(got, c.want) || c.want == "" && got != "" || hopeless != c.hopeless {
			t.Errorf("%s: %q, hopeless %v, want %q", name, got, hopeless, c.want)
		}
	}
}

func TestPodsWithoutOwnerEnd(t *testing.T) {
	w := api{"/api/v1/namespaces/llm/pods/p-1/log": "ValueError: too few blocks\n"}.workload(t, "deployment/vllm")
	for status, want := range map[string]string{
		`{"phase":"Failed","containerStatuses":[{"name":"vllm","state":{"terminated":{"exitCode":1}}}]}`:          "ValueError: too few blocks (it ended with exit status 1)",
		`{"phase":"Failed","reason":"Evicted","message":"The node was low on resource: memory."}`:                 "Evicted: The node was low on resource: memory.",
		`{"phase":"Succeeded","initContainerStatuses":[{"name":"i","state":{"terminated":{"exitCode":0}}}]}`:      "it ended with exit status 0",
		`{"phase":"Running","initContainerStatuses":[{"name":"i","state":{"terminated":{"exitCode":0}}}]}`:        "",
		`{"phase":"Running","conditions":[{"type":"DisruptionTarget","status":"True","message":"drained by x"}]}`: "it is being deleted: drained by x",
	} {
		var p Pod
		must(t, json.Unmarshal([]byte(pod("p-1", "[]", status)), &p))
		p.Metadata.OwnerReferences = nil
		if strings.HasPrefix(want, "it is being") {
			p.Metadata.DeletionTimestamp = &p.Metadata.CreationTimestamp
		}
		if got, hopeless := w.Trouble(t.Context(), &p); !strings.Contains(got, want) || hopeless != (want != "") || want == "" && got != "" {
			t.Errorf("%s: %q, hopeless %v, want %q", status, got, hopeless, want)
		}
	}
}

func TestATunnelToAPodLeadsToNoOther(t *testing.T) {
	for status, want := range map[string]string{ready: "", `{"phase":"Running","conditions":[{"type":"Ready","status":"False","message":"no"}]}`: "is not ready: no", `{"phase":"Running","conditions":[{"type":"Ready","status":"False"},{"type":"ContainersReady","status":"True"}]}`: "the kubelet of its node"} {
		w := api{"/api/v1/namespaces/llm/pods": `{"items":[` + strings.Replace(pod("vllm-1", "[]", status), `"metadata":{`, `"metadata":{"uid":"2",`, 1) + `]}`}.workload(t, "statefulset/vllm")
		for uid, want := range map[types.UID]string{"2": want, "1": "pod vllm-1 is gone"} {
			p := new(Pod)
			p.Metadata.Name, p.Metadata.UID = "vllm-1", uid
			got, err := (&Tunnel{w: w, only: p}).pod(t.Context())
			if want == "" && (err != nil || got.Metadata.Name != "vllm-1") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("to the pod %s: %v, want %q", uid, err, want)
			}
		}
	}
}

// stuck is a connection to a pod that is gone, as the library has it: it opens no stream, and is never called closed.
type stuck struct{ httpstream.Connection }

func (stuck) CreateStream(http.Header) (httpstream.Stream, error) { return nil, errors.New("timeout") }
func (stuck) CloseChan() <-chan bool                              { return nil }
func (stuck) Close() error                                        { return nil }

func TestATunnelLeavesAStuckConnection(t *testing.T) {
	w := api{"/api/v1/namespaces/llm/pods": `{"items":[]}`}.workload(t, "statefulset/vllm")
	p := new(Pod)
	p.Metadata.Name = "vllm-1"
	tunnel := &Tunnel{w: w, ctx: t.Context(), only: p, conn: stuck{}}
	for _, want := range []string{"timeout", "pod vllm-1 is gone"} {
		if _, err := tunnel.dial(); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// The connection to a pod that is gone is closed, and no other: a silent API server says nothing about a pod.
func TestGonePods(t *testing.T) {
	there := `{"items":[` + strings.Replace(pod("vllm-1", "[]", ready), `"metadata":{`, `"metadata":{"uid":"2",`, 1) + `]}`
	for _, c := range []struct {
		name, answer string
		uid          types.UID
		want         bool
	}{
		{"there", there, "2", false},
		{"another of its name", there, "1", true},
		{"deleted", `{"items":[]}`, "2", true},
		{"unknown", `no JSON`, "2", false},
	} {
		w := api{"/api/v1/namespaces/llm/pods": c.answer}.workload(t, "statefulset/vllm")
		p := new(Pod)
		p.Metadata.Name, p.Metadata.UID = "vllm-1", c.uid
		if got := w.gone(t.Context(), p); got != c.want {
			t.Errorf("%s: gone %v, want %v", c.name, got, c.want)
		}
	}
}

func TestOwnersOfObjects(t *testing.T) {
	for text, want := range map[string]string{
		`{"metadata":{"labels":{"app.kubernetes.io/managed-by":"Helm"}}}`:                                                                         "helm upgrade",
		`{"metadata":{"labels":{"app.kubernetes.io/managed-by":"me"}}}`:                                                                           "",
		`{"metadata":{"annotations":{"argocd.argoproj.io/tracking-id":"llm:apps/Deployment:llm/vllm"}}}`:                                          "Argo CD",
		`{"metadata":{"labels":{"kustomize.toolkit.fluxcd.io/name":"llm"}}}`:                                                                      "Kustomization llm",
		`{"metadata":{"ownerReferences":[{"kind":"InferenceService","name":"chat","controller":true}]}}`:                                          "the InferenceService chat makes it",
		`{"metadata":{"ownerReferences":[{"apiVersion":"serving.kserve.io/v1beta1","kind":"InferenceService","name":"chat","controller":true}]}}`: "name that, as --kube inferenceservice/chat",
		`{"metadata":{"ownerReferences":[{"kind":"Application","name":"chat"}],"labels":{"helm.sh/chart":"x"}}}`:                                  "",
	} {
		var o Object
		must(t, json.Unmarshal([]byte(text), &o))
		if got := o.Owner(); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestRolledOut(t *testing.T) {
	for text, want := range map[string]bool{
		`{"metadata":{"generation":3},"spec":{"replicas":2},"status":{"observedGeneration":3,"replicas":2,"updatedReplicas":2,"availableReplicas":2}}`: true,
		`{"metadata":{"generation":4},"spec":{"replicas":2},"status":{"observedGeneration":3,"replicas":2,"updatedReplicas":2,"availableReplicas":2}}`: false,
		// A revert while one pod still runs the trial: the revisions are equal at once.
		`{"metadata":{"generation":3},"spec":{"replicas":2},"status":{"observedGeneration":3,"replicas":2,"updatedReplicas":1,"availableReplicas":2,"readyReplicas":2,"currentRevision":"a","updateRevision":"a"}}`: false,
		`{"metadata":{"generation":3},"spec":{"replicas":2},"status":{"observedGeneration":3,"replicas":3,"updatedReplicas":2,"availableReplicas":2}}`:                                                              false,
		`{"metadata":{"generation":3},"spec":{"replicas":2},"status":{"observedGeneration":3,"replicas":2,"updatedReplicas":2,"availableReplicas":1}}`:                                                              false,
		`{"metadata":{"generation":3},"spec":{"replicas":2},"status":{"observedGeneration":3,"replicas":2,"updatedReplicas":2,"availableReplicas":2,"readyReplicas":2,"currentRevision":"a","updateRevision":"a"}}`: true,
		`{"metadata":{"generation":3},"spec":{"replicas":2},"status":{"observedGeneration":3,"replicas":2,"readyReplicas":2,"updatedReplicas":1,"availableReplicas":2,"currentRevision":"a","updateRevision":"b"}}`: false,
	} {
		var o Object
		must(t, json.Unmarshal([]byte(text), &o))
		if got := o.Rolled(); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// A kubeconfig may name a program for credentials, as for kubectl. It does not run before a request.
func TestConnectRunsNothing(t *testing.T) {
	dir := t.TempDir()
	ran, file := filepath.Join(dir, "ran"), filepath.Join(dir, "config")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: hostile
contexts: [{name: hostile, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: [%q], interactiveMode: Never}}}]
`, ran)
	must(t, os.WriteFile(file, []byte(text), 0o600))
	t.Setenv("KUBECONFIG", file)
	c, err := Connect("")
	if err != nil || c.Context != "hostile" {
		t.Fatalf("%+v, %v", c, err)
	}
	if _, err := os.Stat(ran); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the program for credentials ran: %v", err)
	}
}

// must ends a test that got an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
