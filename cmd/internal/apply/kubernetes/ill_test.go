package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply/manager"
)

// edit applies the steps of a JSON patch, but for its tests.
func edit(at any, steps []struct {
	Op, Path string
	Value    any
}) {
	for _, step := range steps {
		path := strings.Split(step.Path, "/")[1:]
		into := at
		for _, name := range path[:len(path)-1] {
			if list, is := into.([]any); is {
				i, _ := strconv.Atoi(name)
				into = list[i]
			} else {
				into = into.(object)[name]
			}
		}
		last := strings.ReplaceAll(path[len(path)-1], "~1", "/")
		switch step.Op {
		case "add":
			into.(object)[last] = step.Value
		case "remove":
			delete(into.(object), last)
		}
	}
}

// ill is a cluster some of whose answers are errors.
type ill struct {
	*cluster
	patches func(n int) (code int, reason string) // the answer to the n-th patch, 0 for the usual one
	away    func() bool                           // the API server does not answer
	n       int
}

func (i *ill) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if i.away != nil && i.away() {
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = conn.Close()
		}
		return
	}
	if r.Method != http.MethodPatch {
		i.cluster.ServeHTTP(w, r)
		return
	}
	i.n++
	if code, reason := i.patches(i.n); code != 0 {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": "as the test says", "code": code})
		return
	}
	var steps []struct {
		Op, Path string
		Value    any
	}
	_ = json.NewDecoder(r.Body).Decode(&steps)
	i.mu.Lock()
	defer i.mu.Unlock()
	var o object
	_ = json.Unmarshal(text(i.objects[vllmPath]), &o)
	edit(o, steps)
	o["status"].(object)["updatedReplicas"] = 0
	_ = json.NewEncoder(w).Encode(i.store(vllmPath, o))
}

// rollOut has all pods of the Deployment replaced once it starts them with some arguments.
func (c *cluster) rollOut(t *testing.T, args string) {
	done := make(chan struct{})
	t.Cleanup(func() { <-done })
	go func() {
		defer close(done)
		for ; t.Context().Err() == nil; time.Sleep(time.Millisecond) {
			c.mu.Lock()
			begun := strings.Contains(fmt.Sprint(c.objects[vllmPath]["spec"]), args) && fmt.Sprint(c.objects[vllmPath]["status"].(object)["updatedReplicas"]) == "0"
			c.mu.Unlock()
			if begun {
				c.put(vllmPath, `{"status":{"observedGeneration":3,"replicas":2,"updatedReplicas":2,"availableReplicas":2}}`)
				return
			}
		}
	}()
}

func usually(int) (int, string) { return 0, "" }

func TestAChangeThatIsRefusedLeavesTheObject(t *testing.T) {
	for want, answer := range map[string]struct {
		code   int
		reason string
	}{
		"someone else changed it at the same time: as the test says":                                     {http.StatusConflict, "Conflict"},
		"the cluster does not allow it: as the test says; 'rooftop doctor --kube' names what is missing": {http.StatusForbidden, "Forbidden"},
		"the cluster at http://127.0.0.1:PORT does not know this account: log in as for kubectl":         {http.StatusUnauthorized, "Unauthorized"},
		"as the test says": {http.StatusUnprocessableEntity, "Invalid"},
	} {
		c, _ := newCluster(t)
		at := clusterAt(t, &ill{cluster: c, patches: func(int) (int, string) { return answer.code, answer.reason }})
		w := newRun(t, at)
		before := string(text(c.objects[vllmPath]))
		want := strings.ReplaceAll(want, "http://127.0.0.1:PORT", at.Server)
		for range 2 { // a refused change is none that someone else could have ended
			err := w.Make(t.Context(), moreSlots)
			var untouched *manager.UntouchedError
			if !errors.As(err, &untouched) || err.Error() != want {
				t.Errorf("%s: %v, want %q", answer.reason, err, want)
			}
		}
		if now := string(text(c.objects[vllmPath])); now != before {
			t.Errorf("%s: the object is %s", answer.reason, now)
		}
	}
}

func TestAProbeThatFailsIsSaid(t *testing.T) {
	c, _ := newCluster(t)
	at := clusterAt(t, &ill{cluster: c, patches: usually})
	w := newRun(t, at)
	w.within = 100 * time.Millisecond
	for _, name := range []string{"vllm-a", "vllm-b"} {
		c.put(namespace+"pods/"+name, `{"spec":{"containers":[{"name":"proxy"},`+strings.Replace(serves, `"4"`, `"8"`, 1)+`]},`+notReady[1:])
	}
	const want = ": pod vllm-b: it runs and is not ready: probe"
	if err := w.Make(t.Context(), moreSlots); err == nil || !strings.HasPrefix(err.Error(), "the pods of deployment/vllm are not replaced within ") || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	if args := fmt.Sprint(c.objects[vllmPath]["spec"]); !strings.Contains(args, "--max-num-seqs 8") {
		t.Errorf("it starts %s", args)
	}
	before, _ := w.at.Read(t.Context())
	c.put(vllmPath, `{"status":{"observedGeneration":3,"replicas":2,"updatedReplicas":2,"availableReplicas":2}}`)
	c.rollOut(t, "--max-num-seqs 4") // Kubernetes puts the pods back
	w.within = time.Hour
	if err := w.Make(t.Context(), &manager.Change{Revert: true}); err != nil {
		t.Error(err)
	}
	now, err := w.at.Read(t.Context())
	if err != nil || now.Metadata.Annotations[annotation] != "" || before.Metadata.Annotations[annotation] == "" {
		t.Errorf("%v: the annotation was %q and is %q", err, before.Metadata.Annotations[annotation], now.Metadata.Annotations[annotation])
	}
	if args := fmt.Sprint(c.objects[vllmPath]["spec"]); !strings.Contains(args, "--max-num-seqs 4") {
		t.Errorf("reverted, it starts %s", args)
	}
}

func TestAnAPIServerThatComesBackIsWaitedFor(t *testing.T) {
	c, _ := newCluster(t)
	var away atomic.Int32 // requests that get no answer
	at := clusterAt(t, &ill{cluster: c, patches: usually, away: func() bool { return away.Add(-1) >= 0 }})
	w := newRun(t, at)
	away.Store(2)
	c.rollOut(t, "--max-num-seqs 8")
	if err := w.Make(t.Context(), moreSlots); err != nil || away.Load() >= 0 {
		t.Errorf("with %d requests more without an answer: %v", away.Load(), err)
	}
}

// TestARunEndsWithItsTrial: where someone else ends a trial, by kubectl or by recover, the run changes the object no
// further, also after it has made sure of its revert.
func TestARunEndsWithItsTrial(t *testing.T) {
	c, _ := newCluster(t)
	w := newRun(t, clusterAt(t, &ill{cluster: c, patches: usually}))
	before := string(text(c.objects[vllmPath]))
	o, err := w.at.Read(t.Context())
	must(t, err)
	target, err := w.target(moreSlots.All)
	must(t, err)
	must(t, w.set(t.Context(), o, target))
	c.mu.Lock()
	delete(c.objects, vllmPath)
	c.mu.Unlock()
	c.put(vllmPath, before)
	var untouched *manager.UntouchedError
	for i := range 2 {
		if err := w.Make(t.Context(), moreSlots); !errors.As(err, &untouched) || !strings.Contains(err.Error(), "someone else ended the trial of deployment/vllm") {
			t.Errorf("%v", err)
		}
		c.rollOut(t, "--max-num-seqs 4")
		if err := w.Make(t.Context(), &manager.Change{Revert: true}); w.runs != nil || i == 0 && !errors.Is(err, manager.ErrRestored) || i > 0 && err != nil {
			t.Errorf("a revert of what someone else restored: %v", err)
		}
	}
}

// TestARunThatLostItsLeaseKeepsNothing: another rooftop may have changed the object by then.
func TestARunThatLostItsLeaseKeepsNothing(t *testing.T) {
	c, _ := newCluster(t)
	w := newRun(t, clusterAt(t, &ill{cluster: c, patches: usually}))
	must(t, w.Hold(t.Context()))
	if _, err := New(t.Context(), w.at, time.Minute, false); err == nil || !strings.Contains(err.Error(), "another rooftop tunes deployment/vllm") {
		t.Errorf("a second run beside one that holds the lease: %v", err)
	}
	c.put(leasePath, leaseOf("thief, process 1 on other"))
	if err := w.Keep(t.Context()); err == nil || !strings.Contains(err.Error(), "another rooftop tunes deployment/vllm: thief") {
		t.Errorf("%v", err)
	}
}
