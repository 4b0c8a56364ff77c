//go:build e2e && linux

package main_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// balance replaces a Service: it offers each of its addresses the same load, but other prompts to one that was added
// later.
func (d *deployed) balance(replicas, port int, laterPrompts string) {
	d.t.Helper()
	service := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "%s"}, "spec": {"selector": {"app": "%[1]s"}, "ports": [{"port": 8000, "targetPort": %[2]d}]}}`, d.name, port)
	d.request(d.t, "POST", "/api/v1/namespaces/default/services", "application/json", service)
	d.t.Cleanup(func() {
		d.request(d.t, "DELETE", "/api/v1/namespaces/default/services/"+d.name, "application/json", "")
	})
	d.offer(strings.NewReplacer("NAME", d.name, "BINARY", d.binary, "PORT", fmt.Sprint(port), "FIRST", fmt.Sprint(replicas), "LATER", laterPrompts).Replace(`
seen=" " loads=
trap 'kill $loads; exit' TERM
while sleep 0.3; do
  for ip in $(curl -sk -H "Authorization: Bearer admin-token" https://127.0.0.1:6443/api/v1/namespaces/default/endpoints/NAME | sed -n '/notReadyAddresses/q; s/.*"ip": "\(.*\)".*/\1/p'); do
    case $seen in *" $ip "*) continue ;; esac
    seen="$seen$ip "
    tokens=64
    [ $(echo $seen | wc -w) -le FIRST ] || tokens=LATER
    BINARY load --url http://$ip:PORT --clients 12 --prompt-tokens $tokens --output-tokens 32-64 --duration 0 &
    loads="$loads $!"
  done
done`), "load-of-"+d.name+"-")
}

// canaries returns the names of the existing canary pods.
func (d *deployed) canaries() (names []string) {
	items, _ := d.request(d.t, "GET", "/api/v1/namespaces/default/pods?labelSelector=rooftop.dev%2Fcanary,app%3D"+d.name, "application/json", "")["items"].([]any)
	for _, item := range items {
		names = append(names, fmt.Sprint(item.(map[string]any)["metadata"].(map[string]any)["name"]))
	}
	return names
}

func (c cluster) testCanaries(t *testing.T) {
	const replicas = 3
	for _, k := range []struct {
		name, prompts string
		port          int
		kept          bool
		said          string // of one of the events
	}{
		{"kept", "64", 8000, true, "the canary is removed and the change is made to all: it was better as a canary beside 3 others: output +"},
		{"worse", "64", 7001, false, "worse: as a canary beside 3 others: output −"},
		{"other-prompts", "1500", 8000, false, "prompt tokens"},
		{"no-start", "64", 9001, false, "ValueError: 100% of the memory is taken"},
	} {
		t.Run("canary "+k.name, func(t *testing.T) {
			t.Parallel()
			d := c.create(t, "Deployment", "canary-"+k.name, k.port, replicas, "10m").up(replicas)
			d.balance(replicas, k.port, k.prompts)
			before := d.stated()
			var problems bytes.Buffer
			cmd := d.tune("--canary", "--longest", "60s")
			cmd.Stderr = &problems
			out, _ := cmd.Output()
			events := eventsOf(t, out)
			if !strings.Contains(told(events), k.said) {
				t.Errorf("%q is not said: %s", k.said, problems.String())
			}
			if left := d.canaries(); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
			after := d.stated()
			was, is := d.container(before)["args"], d.container(after)["args"]
			if kept := len(ofType(events, "kept")) > 0; kept != k.kept || cmp.Equal(was, is) == k.kept {
				t.Errorf("kept %v: it starts %v", kept, is)
			}
			d.container(after)["args"] = was
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("more than its arguments differs:\n%s", diff)
			}
			t.Logf("%s", told(events))
		})
	}
	for _, from := range []string{"journal", "cluster"} {
		t.Run("canary killed, by the "+from, func(t *testing.T) {
			t.Parallel()
			d := c.create(t, "Deployment", "canary-kill-"+from, 8000, replicas, "10m").up(replicas)
			d.balance(replicas, 8000, "64")
			before := d.stated()
			cmd, _ := untilEvent(t, d.tune("--canary"), "trial")
			d.output("pkill", "-KILL", "-f", "tune .*"+d.workload())
			_ = cmd.Wait()
			if len(d.canaries()) != 1 {
				t.Fatalf("canaries %v", d.canaries())
			}
			recover := d.rooftop("recover", "--yes")
			if from == "cluster" {
				recover = d.rooftop("recover", "--yes", "--kube", d.workload())
			}
			if out, err := recover.CombinedOutput(); err != nil || len(d.canaries()) > 0 {
				t.Errorf("recover: %v, %v is left\n%s", err, d.canaries(), out)
			}
			d.unchanged(before, "recovered")
		})
	}
}
