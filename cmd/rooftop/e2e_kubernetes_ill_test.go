//go:build e2e && linux

package main_test

import (
	"bufio"
	"io"
	"strings"
	"testing"
	"time"
)

// testScaled scales a workload while a change to it is on trial.
func (c cluster) testScaled(t *testing.T) {
	t.Run("scaled", func(t *testing.T) {
		t.Parallel()
		d := c.deploy(t, "Deployment", "vllm-hpa", 8000, "10m")
		const scalers = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
		d.request(t, "POST", scalers, "application/json", `{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"vllm-hpa"},"spec":{"minReplicas":1,"maxReplicas":3,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"vllm-hpa"}}}`)
		t.Cleanup(func() { d.request(t, "DELETE", scalers+"/vllm-hpa", "application/json", "") })
		cmd, rest := untilEvent(t, d.tune(), "server-up")
		events := follow(rest)
		d.request(t, "PATCH", d.path(), "application/merge-patch+json", `{"spec":{"replicas":2}}`)
		const said = "deployment/vllm-hpa was scaled from 1 to 2 pods: the pod that is measured gets another share of the traffic; the HorizontalPodAutoscaler vllm-hpa scales it"
		out, found := readUntil(events, said, time.Minute)
		if !found {
			t.Errorf("%q is not said:\n%s", said, out)
		}
		d.output("pkill", "-INT", "-f", "tune .*"+d.workload())
		_, _ = readUntil(events, "\x00", time.Minute)
		_ = cmd.Wait()
		now := d.stated() // the change is kept or reverted, whichever came first
		if n, left := now["spec"].(map[string]any)["replicas"], now["metadata"].(map[string]any)["annotations"].(map[string]any); n != float64(2) || len(left) != 1 {
			t.Errorf("it has %v pods, and the annotations %v", n, left)
		}
	})
}

// testIll stops the API server for half a minute while a change is on trial, and then the node. It is the last test
// of the cluster.
func (c cluster) testIll(t *testing.T) {
	t.Run("API server away, node gone", func(t *testing.T) {
		d := c.deploy(t, "Deployment", "vllm-ill", 8000, "10m")
		before := d.stated()
		cmd, rest := untilEvent(t, d.tune("--start-timeout", "30s"), "server-up")
		events := follow(rest)
		d.output("pkill", "-STOP", "-f", "kube-apiserver --etcd")
		time.Sleep(30 * time.Second)
		d.output("pkill", "-CONT", "-f", "kube-apiserver --etcd")
		away, found := readUntil(events, "the server answers again after", 90*time.Second)
		if !found || !strings.Contains(away, "does not answer") || !strings.Contains(away, "this says nothing about the server: waiting up to") || strings.Contains(away, "applying") {
			t.Fatalf("while the API server was away it said:\n%s", away)
		}
		d.output("pkill", "-KILL", "-f", "bin/kubelet --config")
		gone, found := readUntil(events, "the kubelet of its node node1 does not answer the API server", time.Minute)
		if !found {
			t.Errorf("of a node that is gone it said:\n%s", gone)
		}
		d.output("pkill", "-INT", "-f", "tune .*"+d.workload())
		end, _ := readUntil(events, "\x00", 2*time.Minute)
		if err := cmd.Wait(); err == nil || !strings.Contains(end, "the kubelet of its node node1 has not begun to start it") {
			t.Errorf("%v: of pods that are not replaced it said:\n%s", err, end)
		}
		d.unchanged(before, "after the node went away")
		t.Logf("%s\n%s\n%s", away, gone, end)
	})
}

// follow sends the remaining events of a run, without windows and looks, one by one. The channel is closed at their
// end.
func follow(events io.Reader) <-chan string {
	lines := make(chan string, 10_000)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(events); in.Scan(); {
			if line := in.Text(); !strings.Contains(line, `"type":"window"`) && !strings.Contains(line, `"type":"trial"`) {
				lines <- line[:min(len(line), 600)]
			}
		}
	}()
	return lines
}

// readUntil returns events until one contains a text; found is false if the events end first, or after a time.
func readUntil(lines <-chan string, text string, within time.Duration) (said string, found bool) {
	end := time.After(within)
	for {
		select {
		case line, more := <-lines:
			said += line + "\n"
			if found = strings.Contains(line, text); found || !more {
				return said, found
			}
		case <-end:
			return said, false
		}
	}
}
