package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply/manager"
	"github.com/rooftop-dev/rooftop/cmd/internal/kube"
	"github.com/rooftop-dev/rooftop/engine"
)

type object = map[string]any

// cluster is an API server that stores objects by their paths. It starts no pods.
type cluster struct {
	mu      sync.Mutex
	objects map[string]object
	status  string            // of pods that are made
	denied  string            // a verb, a space and a resource
	read    func(path string) // called behind each read, with mu held
	version int
}

func TestMain(m *testing.M) {
	rolloutPoll = 10 * time.Millisecond
	os.Exit(m.Run())
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Method == http.MethodGet && c.read != nil {
		defer c.read(r.URL.Path)
	}
	var body object
	_ = json.NewDecoder(r.Body).Decode(&body)
	answer := func(o object) { _ = json.NewEncoder(w).Encode(o) }
	fail := func(code int, reason string) {
		w.WriteHeader(code)
		answer(object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code})
	}
	at := r.URL.Path
	have, there := c.objects[at]
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(at, "/selfsubjectaccessreviews"):
		of := body["spec"].(object)["resourceAttributes"].(object)
		answer(object{"status": object{"allowed": fmt.Sprint(of["verb"], " ", of["resource"]) != c.denied || of["subresource"] != ""}})
	case strings.HasSuffix(at, "/log"):
		_, _ = w.Write([]byte("INFO loading\nValueError: no memory for TOKEN-VALUE\n"))
	case r.Method == http.MethodPost:
		name := at + "/" + body["metadata"].(object)["name"].(string)
		if _, there := c.objects[name]; there {
			fail(http.StatusConflict, "AlreadyExists")
			return
		}
		if body["kind"] == "Pod" {
			_ = json.Unmarshal([]byte(c.status), &body)
		}
		answer(c.store(name, body))
	case r.Method == http.MethodGet && !there && slices.Contains([]string{"pods", "services", "leases", "horizontalpodautoscalers"}, path.Base(at)):
		answer(object{"items": c.items(at, r.URL.Query().Get("labelSelector"))})
	case !there:
		fail(http.StatusNotFound, "NotFound")
	case r.Method == http.MethodPut && body["metadata"].(object)["resourceVersion"] != have["metadata"].(object)["resourceVersion"]:
		fail(http.StatusConflict, "Conflict")
	case r.Method == http.MethodPut:
		answer(c.store(at, body))
	case r.Method == http.MethodDelete:
		delete(c.objects, at)
		answer(have)
	default:
		answer(have)
	}
}

func (c *cluster) onRead(do func(path string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = do
}

func (c *cluster) store(at string, o object) object {
	c.version++
	about := o["metadata"].(object)
	about["resourceVersion"] = fmt.Sprint(c.version)
	if about["uid"] == nil {
		about["uid"] = fmt.Sprint("uid-", c.version)
	}
	c.objects[at] = o
	return o
}

func (c *cluster) items(at, selector string) []object {
	wants, _ := labels.Parse(selector)
	list := []object{}
	for _, name := range slices.Sorted(maps.Keys(c.objects)) {
		var o struct {
			Metadata struct{ Labels map[string]string }
		}
		_ = json.Unmarshal(text(c.objects[name]), &o)
		if path.Dir(name) == at && wants.Matches(labels.Set(o.Metadata.Labels)) {
			list = append(list, c.objects[name])
		}
	}
	return list
}

func text(o any) []byte {
	text, _ := json.Marshal(o)
	return text
}

// put stores an object as JSON, or changes parts of one.
func (c *cluster) put(at, parts string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.objects[at]
	if o == nil {
		o = object{}
	}
	if err := json.Unmarshal([]byte(parts), &o); err != nil {
		panic(err)
	}
	c.store(at, o)
}

const (
	namespace = "/api/v1/namespaces/llm/"
	vllmPath  = "/apis/apps/v1/namespaces/llm/deployments/vllm"
	leasePath = "/apis/coordination.k8s.io/v1/namespaces/llm/leases/rooftop-deployment-vllm"
	ready     = `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`
	serves    = `{"name":"vllm","command":["vllm","serve"],"args":["m","--max-num-seqs","4"],"env":[{"name":"NODE","valueFrom":{"fieldRef":{"fieldPath":"spec.nodeName"}}},{"name":"VLLM_API_KEY","value":"TOKEN-VALUE"}],"readinessProbe":{"httpGet":{"port":8000}}}`
)

// newCluster returns a cluster with a Deployment of two pods and a Service, and the Deployment as kube has it.
func newCluster(t *testing.T) (*cluster, *kube.Workload) {
	t.Helper()
	c := &cluster{objects: map[string]object{}, status: ready}
	c.put(vllmPath, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"vllm","uid":"owner","generation":3},
	 "spec":{"replicas":2,"selector":{"matchLabels":{"app":"vllm"}},"template":{"metadata":{"labels":{"app":"vllm","pod-template-hash":"x"},"annotations":{"scrape":"yes"}},
	  "spec":{"restartPolicy":"Always","futureField":{"kept":true},"containers":[{"name":"proxy","image":"p"},`+serves+`]}}},
	 "status":{"observedGeneration":3,"replicas":2,"updatedReplicas":2,"availableReplicas":2}}`)
	c.put(namespace+"services/front", `{"metadata":{"name":"front"},"spec":{"selector":{"app":"vllm"}}}`)
	c.put(namespace+"services/other", `{"metadata":{"name":"other"},"spec":{"selector":{"app":"other"}}}`)
	for _, name := range []string{"vllm-a", "vllm-b"} {
		c.put(namespace+"pods/"+name, `{"metadata":{"name":"`+name+`","labels":{"app":"vllm"},"ownerReferences":[{"kind":"ReplicaSet","name":"vllm-x","controller":true}]},"spec":{"containers":[{"name":"proxy"},`+serves+`]},`+ready[1:])
	}
	return c, clusterAt(t, c)
}

// clusterAt returns the Deployment in the cluster of an API server.
func clusterAt(t *testing.T, api http.Handler) *kube.Workload {
	t.Helper()
	s := httptest.NewServer(api)
	t.Cleanup(s.Close)
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":"`+s.URL+`"}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"","namespace":"llm"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", config)
	connected, err := kube.Connect("")
	must(t, err)
	at, err := connected.Parse("deployment/vllm")
	must(t, err)
	return at
}

func newRun(t *testing.T, at *kube.Workload) *Workload {
	t.Helper()
	w, err := New(t.Context(), at, time.Minute, false)
	must(t, err)
	t.Cleanup(w.Close)
	return w
}

var moreSlots = &manager.Change{All: []engine.Change{{Flag: "--max-num-seqs", From: "4", To: "8"}}}

// canaries returns the canary pods of a cluster.
func (c *cluster) canaries() []object {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.items(namespace+"pods", kube.CanaryLabel+"=true")
}

func TestCanaryPodIsOneMoreOfTheSame(t *testing.T) {
	c, at := newCluster(t)
	w := newRun(t, at)
	if c.objects[leasePath] != nil {
		t.Error("the lease is taken before anything is changed")
	}
	before := string(text(c.objects[vllmPath]))
	copied, err := w.Beside(t.Context(), moreSlots)
	must(t, err)
	var pod struct {
		Metadata struct {
			Name                string
			Labels, Annotations map[string]string
			OwnerReferences     []object
		}
		Spec struct {
			RestartPolicy string
			FutureField   json.RawMessage
			Containers    []json.RawMessage
		}
	}
	if list := c.canaries(); len(list) != 1 || json.Unmarshal(text(list[0]), &pod) != nil {
		t.Fatalf("canary pods: %s", text(list))
	}
	if got := string(text(pod.Metadata.Labels)); got != `{"app":"vllm","rooftop.dev/canary":"true"}` || !strings.HasPrefix(pod.Metadata.Name, "vllm-canary-") {
		t.Errorf("%s has the labels %s", pod.Metadata.Name, got)
	}
	if got := string(text(pod.Metadata.OwnerReferences)); got != `[{"apiVersion":"apps/v1","kind":"Deployment","name":"vllm","uid":"owner"}]` {
		t.Errorf("it belongs to %s", got)
	}
	if a := pod.Metadata.Annotations; a["scrape"] != "yes" || !strings.Contains(a[annotation], w.id) {
		t.Errorf("it has the annotations %v", a)
	}
	if pod.Spec.RestartPolicy != "Never" || !strings.Contains(string(pod.Spec.FutureField), `{"kept":true}`) {
		t.Errorf("restart policy %s, and a field of a later version is %s", pod.Spec.RestartPolicy, pod.Spec.FutureField)
	}
	if got := string(pod.Spec.Containers[1]); !strings.Contains(got, `["m","--max-num-seqs","8"]`) || !strings.Contains(got, "fieldRef") || !strings.Contains(got, "readinessProbe") {
		t.Errorf("its container is %s", got)
	}
	if o, err := at.Read(t.Context()); err != nil {
		t.Error(err)
	} else if pods, err := at.Pods(t.Context(), o); err != nil || len(pods) != 2 {
		t.Errorf("it counts as one of the object's %d pods, %v", len(pods), err)
	}
	if !strings.HasPrefix(copied.URL(), "http://127.0.0.1:") || len(copied.Others()) != 2 {
		t.Errorf("it is at %s, the others at %s", copied.URL(), copied.Others())
	}
	if err := copied.Ended(t.Context()); err != nil {
		t.Errorf("it has ended: %v", err)
	}
	if _, err := w.Beside(t.Context(), moreSlots); err == nil || !strings.Contains(err.Error(), "has a canary pod already, "+pod.Metadata.Name) {
		t.Errorf("a second one: %v", err)
	}
	if holder := text(c.objects[leasePath]); !strings.Contains(string(holder), w.id+", process") {
		t.Errorf("the lease is %s", holder)
	}
	if err := errors.Join(copied.Remove(t.Context()), copied.Remove(t.Context())); err != nil || len(c.canaries()) > 0 {
		t.Errorf("removed: %v, and there is %s", err, text(c.canaries()))
	}
	if now := string(text(c.objects[vllmPath])); now != before {
		t.Errorf("the object was changed: %s", now)
	}
	w.Close()
	if c.objects[leasePath] != nil {
		t.Error("the lease is held after Close")
	}
}

func TestCanaryPodsAreRefused(t *testing.T) {
	for want, change := range map[string]func(c *cluster){
		"no Service of the namespace llm": func(c *cluster) { c.put(namespace+"services/front", `{"spec":{"selector":{"app":"vllm","x":"y"}}}`) },
		"volumeClaimTemplates":            func(c *cluster) { c.put(vllmPath, `{"spec":{"volumeClaimTemplates":[{}],`+c.spec()) },
		"has no readinessProbe":           func(c *cluster) { c.put(vllmPath, `{"spec":{`+strings.ReplaceAll(c.spec(), "readinessProbe", "x")) },
		"someone else changed":            func(c *cluster) { c.put(vllmPath, `{"spec":{`+strings.ReplaceAll(c.spec(), `"4"`, `"5"`)) },
		"is being changed already":        func(c *cluster) { c.put(vllmPath, `{"status":{"observedGeneration":2}}`) },
		"no pod that is ready": func(c *cluster) {
			c.put(namespace+"pods/vllm-a", `{"status":{}}`)
			c.put(namespace+"pods/vllm-b", `{"status":{}}`)
		},
		"process 7 of rooftop on n":         func(c *cluster) { c.leave() },
		"another rooftop tunes deployment":  func(c *cluster) { c.put(leasePath, leaseOf("b, process 8 on n")) },
		"may not create pods in":            func(c *cluster) { c.denied = "create pods" },
		"":                                  func(*cluster) {},
		"whether one sends requests to it ": func(c *cluster) { c.denied = "list services" },
	} {
		c, at := newCluster(t)
		if strings.HasPrefix(want, "may not") || strings.HasPrefix(want, "whether") {
			change(c)
		}
		w := newRun(t, at)
		change(c)
		notes, err := w.CheckBeside(t.Context())
		said := strings.Join(notes, "; ")
		var untouched *manager.UntouchedError
		if err == nil {
			_, err = w.Beside(t.Context(), moreSlots)
		} else if _, again := w.Beside(t.Context(), moreSlots); !errors.As(again, &untouched) || again.Error() != err.Error() {
			t.Errorf("%s: Beside says: %v", want, again)
		}
		if err != nil {
			said = err.Error()
		}
		if refused := want != "" && !strings.HasPrefix(want, "whether"); !strings.Contains(said, want) || refused != (err != nil) || refused && strings.Contains(want, "process 7") != (len(c.canaries()) > 0) {
			t.Errorf("want %q: %s, with %d canary pods", want, said, len(c.canaries()))
		}
	}
}

// spec returns the fields of the Deployment's specification, as JSON without the first brace but with two behind.
func (c *cluster) spec() string { return string(text(c.objects[vllmPath]["spec"]))[1:] + "}" }

// leave leaves a canary pod of another run.
func (c *cluster) leave() {
	c.put(namespace+"pods/vllm-canary-z", `{"metadata":{"name":"vllm-canary-z","labels":{"app":"vllm","rooftop.dev/canary":"true"},"annotations":{"rooftop.dev/trial":"{\"id\":\"a\",\"machine\":\"n\",\"process\":7}"},"ownerReferences":[{"uid":"owner"}]}}`)
}

func leaseOf(holder string) string {
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	return `{"metadata":{"name":"rooftop-deployment-vllm"},"spec":{"holderIdentity":"` + holder + `","leaseDurationSeconds":60,"acquireTime":"` + now + `","renewTime":"` + now + `"}}`
}

func TestCanaryPodsThatDoNotStartAreRemoved(t *testing.T) {
	for status, want := range map[string]string{
		`{"phase":"Failed","containerStatuses":[{"name":"vllm","state":{"terminated":{"exitCode":1}}}]}`:                        "ValueError: no memory for [redacted] (it ended with exit status 1)",
		`{"phase":"Failed","containerStatuses":[{"name":"vllm","state":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]}`: "OOMKilled",
		`{"phase":"Failed","reason":"Evicted","message":"The node was low on resource: memory."}`:                               "Evicted: The node was low on resource: memory.",
		`{"phase":"Succeeded","containerStatuses":[{"name":"vllm","state":{"terminated":{"exitCode":0}}}]}`:                     "it ended with exit status 0",
		`{"phase":"Pending","containerStatuses":[{"name":"vllm","state":{"waiting":{"reason":"ErrImageNeverPull"}}}]}`:          "it does not start: ErrImageNeverPull",
	} {
		c, at := newCluster(t)
		c.status = `{"status":` + status + `}`
		w := newRun(t, at)
		_, err := w.Beside(t.Context(), moreSlots)
		var untouched *manager.UntouchedError
		if !errors.As(err, &untouched) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "TOKEN") || len(c.canaries()) > 0 {
			t.Errorf("%s: %v, and there is %s", status, err, text(c.canaries()))
		}
	}
}

func TestCanaryPodsEndWithTheComparison(t *testing.T) {
	for want, change := range map[string]func(c *cluster, canary string){
		"is gone: someone else deleted it":            func(c *cluster, canary string) { c.mu.Lock(); delete(c.objects, canary); c.mu.Unlock() },
		"it is being deleted: Preempted":              func(c *cluster, canary string) { c.end(canary) },
		"it runs and is not ready: probe":             func(c *cluster, canary string) { c.put(canary, notReady) },
		"pod vllm-a: it runs and is not ready: probe": func(c *cluster, _ string) { c.put(namespace+"pods/vllm-a", notReady) },
		"pod vllm-a was ended meanwhile":              func(c *cluster, _ string) { c.end(namespace + "pods/vllm-a") },
		"vllm was scaled from 2 to 3 pods meanwhile": func(c *cluster, _ string) {
			c.put(vllmPath, `{"spec":{"replicas":3,`+strings.Replace(c.spec(), `"replicas":2,`, "", 1))
		},
		"someone else changed deployment/vllm": func(c *cluster, _ string) {
			c.put(vllmPath, `{"metadata":{"name":"vllm","uid":"owner","generation":4}}`)
		},
		"pod vllm-b was started again meanwhile": func(c *cluster, _ string) {
			c.put(namespace+"pods/vllm-b", strings.Replace(ready, `{"phase"`, `{"containerStatuses":[{"name":"vllm","restartCount":1}],"phase"`, 1))
		},
		"pod vllm-c was started meanwhile": func(c *cluster, _ string) {
			c.put(namespace+"pods/vllm-c", strings.ReplaceAll(string(text(c.objects[namespace+"pods/vllm-b"])), "vllm-b", "vllm-c"))
			c.put(namespace+"pods/vllm-c", `{"metadata":{"name":"vllm-c","uid":"c","labels":{"app":"vllm"},"ownerReferences":[{"kind":"ReplicaSet","name":"vllm-x","controller":true}]}}`)
		},
	} {
		c, at := newCluster(t)
		w := newRun(t, at)
		copied, err := w.Beside(t.Context(), moreSlots)
		must(t, err)
		change(c, namespace+"pods/"+c.canaries()[0]["metadata"].(object)["name"].(string))
		if err := copied.Ended(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
		if err := copied.Ended(t.Context()); err != nil {
			t.Errorf("the cluster is asked again at once: %v", err)
		}
	}
}

const notReady = `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"False","message":"probe"}]}}`

// end marks a pod as one that is being deleted.
func (c *cluster) end(pod string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.objects[pod]["metadata"].(object)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	c.objects[pod]["status"] = object{"phase": "Running", "conditions": []object{{"type": "DisruptionTarget", "status": "True", "message": "Preempted"}}}
}

func TestCanaryPodsThatAreLeftAreFoundAndDeleted(t *testing.T) {
	c, at := newCluster(t)
	c.leave()
	if _, err := New(t.Context(), at, time.Minute, false); err == nil || !strings.Contains(err.Error(), "recover --kube") {
		t.Errorf("a run begins beside it: %v", err)
	}
	w, found, err := Left(t.Context(), at, time.Minute)
	if err != nil || len(found) == 0 || found[0] != "a canary pod, vllm-canary-z, was left by process 7 of rooftop on n" {
		t.Fatalf("found %q, %v", found, err)
	}
	revert := &manager.Change{Revert: true}
	if steps := w.Steps(revert); len(steps) != 1 || steps[0] != "delete the pod vllm-canary-z" {
		t.Errorf("it would %q", steps)
	}
	if err := w.Make(t.Context(), revert); err != nil || len(c.canaries()) > 0 || c.objects[leasePath] != nil {
		t.Errorf("%v, and there is %s, with the lease %v", err, text(c.canaries()), c.objects[leasePath])
	}

	c.leave()
	for i, id := range []string{"b", "a"} { // only that of the run
		w := newWorkload(at, id, time.Minute)
		if err := w.Make(t.Context(), revert); err != nil || len(c.canaries()) != 1-i {
			t.Errorf("by run %s: %v, and there is %s", id, err, text(c.canaries()))
		}
	}
}

func TestARunThatIsGoingOnIsNotRecovered(t *testing.T) {
	c, at := newCluster(t)
	c.leave()
	c.put(leasePath, leaseOf("a, process 7 on n"))
	w, found, err := Left(t.Context(), at, time.Minute)
	if err != nil || !strings.Contains(strings.Join(found, "\n"), "another rooftop tunes deployment/vllm: a, process 7 on n, since") || !strings.HasPrefix(w.Steps(&manager.Change{})[0], "wait") {
		t.Errorf("found %q, %v", found, err)
	}
	c.onRead(func(path string) { // it renews it
		if path == leasePath {
			c.store(path, c.objects[path])
		}
	})
	if err := w.Make(t.Context(), &manager.Change{Revert: true}); err == nil || !strings.Contains(err.Error(), "another rooftop tunes") || len(c.canaries()) == 0 {
		t.Errorf("%v, and there is %s", err, text(c.canaries()))
	}
	c.onRead(nil)
	same := newWorkload(at, "a", time.Minute) // by its journal, which a run that goes on has locked
	if err := same.Make(t.Context(), &manager.Change{Revert: true}); err != nil || len(c.canaries()) > 0 {
		t.Errorf("%v, and there is %s", err, text(c.canaries()))
	}
}

// must ends a test that got an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
