//go:build e2e && linux

package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A server in pods, with a real control plane and a real node of Kubernetes in separate namespaces, and simulated
// servers. ROOFTOP_E2E_KUBERNETES is the output of .ci/install-kubernetes, ROOFTOP_E2E_KILLS the number of times that
// a rooftop is killed.

// cluster is a machine that runs a cluster of one node.
type cluster struct{ *machine }

// request sends a request to the API server as its administrator. A body is JSON or YAML.
func (c cluster) request(t *testing.T, method, path, kind, body string) map[string]any {
	t.Helper()
	answer, out, err := c.try(method, path, kind, body)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", method, path, err, out)
	}
	return answer
}

// try sends a request that may fail, and also returns the text of the answer.
func (c cluster) try(method, path, kind, body string) (answer map[string]any, out []byte, err error) {
	cmd := c.command("curl", "-sSk", "--fail-with-body", "-X", method, "-H", "Authorization: Bearer admin-token", "-H", "Content-Type: "+kind, "--data-binary", "@-", "https://127.0.0.1:6443"+path)
	cmd.Stdin = strings.NewReader(body)
	if out, err = cmd.Output(); err == nil {
		err = json.Unmarshal(out, &answer)
	}
	return answer, out, err
}

// deployed is an object of the cluster whose pods run a server.
type deployed struct {
	cluster
	t          *testing.T
	kind, name string // Deployment, StatefulSet or one of operated
}

// deploymentText is a server with four slots, and settings that must not change. Its entrypoint is that of
// serveScript.
const deploymentText = `{
 "apiVersion": "apps/v1", "kind": "KIND", "metadata": {"name": "NAME", "labels": {"team": "a-b"}, "annotations": {"note": "<&>"}},
 "spec": {"replicas": 1, SERVICE "selector": {"matchLabels": {"app": "NAME"}}, "template": {"metadata": {"labels": {"app": "NAME"}}, "spec": {
  "terminationGracePeriodSeconds": 2,
  "volumes": [{"name": "usr", "hostPath": {"path": "/usr"}}, {"name": "lib64", "hostPath": {"path": "/usr/lib64"}}, {"name": "lib", "hostPath": {"path": "/usr/lib"}}, {"name": "serve", "hostPath": {"path": "DIR/serve"}}],
  "containers": [{"name": "vllm", "image": "docker.io/local/rooftop:1", "imagePullPolicy": "Never", "command": ["/usr/bin/sh", "/serve", "/rooftop", "sim"],
   "args": ["MODEL", "--host", "0.0.0.0", "--port", "PORT", "--max-num-seqs", "4", "--sim-gpu", "NVIDIA A100-SXM4-80GB", "--max-model-len", "4096", "--sim-startup-time", "300ms", "--served-model-name", "<$m> \"%i\""],
   "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}, {"name": "TOKEN", "value": "<secret>"}],
   "ports": [{"name": "http", "containerPort": PORT}], "resources": {"requests": {"cpu": "CPU"}},
   "readinessProbe": {"httpGet": {"path": "/health", "port": PORT}, "periodSeconds": 1},
   "volumeMounts": [{"name": "usr", "mountPath": "/usr"}, {"name": "lib64", "mountPath": "/lib64"}, {"name": "lib", "mountPath": "/lib"}, {"name": "serve", "mountPath": "/serve"}]}]}}}}`

const apps = "/apis/apps/v1/namespaces/default/"

// deploy makes a Deployment of one pod with clients that need more than its slots. serveScript explains the port.
func (c cluster) deploy(t *testing.T, kind, name string, port int, cpu string) *deployed {
	t.Helper()
	d := c.create(t, kind, name, port, 1, cpu)
	d.offer(fmt.Sprintf("until %s load --kube %s --clients 12 --prompt-tokens 64 --output-tokens 32-64 --duration 0; do sleep 0.5; done", c.binary, d.workload()), "load --kube "+d.workload()+" ")
	return d.up(1)
}

// create makes a Deployment without load.
func (c cluster) create(t *testing.T, kind, name string, port, replicas int, cpu string) *deployed {
	t.Helper()
	d := &deployed{c, t, kind, name}
	service := map[string]string{"StatefulSet": `"serviceName": "vllm",`}[kind]
	text := strings.NewReplacer("KIND", kind, "SERVICE", service, "NAME", name, "MODEL", simModel, "PORT", strconv.Itoa(port), "CPU", cpu, "DIR", filepath.Join(c.dir, "shared"),
		`"replicas": 1`, fmt.Sprintf(`"replicas": %d`, replicas)).Replace(deploymentText)
	c.request(t, "POST", path.Dir(d.path()), "application/json", text)
	t.Cleanup(func() { c.request(t, "DELETE", d.path(), "application/json", "") })
	return d
}

// offer runs a script that offers load, in processes with the given command line.
func (d *deployed) offer(script, processes string) {
	d.t.Helper()
	load := d.command("KUBECONFIG="+filepath.Join(d.dir, "kubeconfig"), "sh", "-c", script, "load-of-"+d.name+"-")
	var said bytes.Buffer
	load.Stdout, load.Stderr = &said, &said
	must(d.t, load.Start())
	d.t.Cleanup(func() {
		_ = d.command("pkill", "-f", "load-of-"+d.name+"-").Run()
		_ = d.command("pkill", "-f", processes).Run()
		_ = load.Wait()
		if d.t.Failed() {
			d.t.Logf("its load: %s", said.String())
		}
	})
}

// up waits until all pods take requests.
func (d *deployed) up(replicas int) *deployed {
	d.t.Helper()
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		status, _ := d.object()["status"].(map[string]any)
		if status["availableReplicas"] == float64(replicas) {
			return d
		}
		if time.Since(began) > 3*time.Minute {
			d.t.Fatalf("%s is not up: %v", d.name, d.pods())
		}
	}
}

func (d *deployed) path() string {
	if at, custom := operated[d.kind]; custom {
		return at + strings.ToLower(d.kind) + "s/" + d.name
	}
	return apps + strings.ToLower(d.kind) + "s/" + d.name
}

// workload is the name that --kube takes.
func (d *deployed) workload() string { return strings.ToLower(d.kind) + "/" + d.name }

func (d *deployed) object() map[string]any {
	d.t.Helper()
	return d.request(d.t, "GET", d.path(), "application/json", "")
}

func (d *deployed) pods() any {
	return d.request(d.t, "GET", "/api/v1/namespaces/default/pods?labelSelector=app%3D"+d.name, "application/json", "")["items"]
}

// stated returns the object as its author wrote it, without the fields that the cluster adds.
func (d *deployed) stated() map[string]any {
	d.t.Helper()
	o := d.object()
	delete(o, "status")
	about := o["metadata"].(map[string]any)
	for _, field := range []string{"generation", "managedFields", "resourceVersion"} {
		delete(about, field)
	}
	delete(about["annotations"].(map[string]any), "deployment.kubernetes.io/revision")
	return o
}

func (d *deployed) container(o map[string]any) map[string]any {
	spec := o["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	return spec["containers"].([]any)[0].(map[string]any)
}

// rooftop returns a command of rooftop as the user of docs/kubernetes-role.yaml.
func (d *deployed) rooftop(args ...string) *exec.Cmd {
	return d.command(append([]string{"XDG_STATE_HOME=" + filepath.Join(d.dir, "shared", d.name), "KUBECONFIG=" + filepath.Join(d.dir, "kubeconfig"), d.binary}, args...)...)
}

func (d *deployed) tune(further ...string) *exec.Cmd {
	return d.rooftop(append([]string{"tune", "--auto", "--json", "--no-report", "--restart-in-place", "--kube", d.workload(), "--duration", "8s", "--longest", "120s", "--start-timeout", "90s", "--max-restarts", "6"}, further...)...)
}

// recover restores the server after a killed run, half of the time from another machine, using only the object.
func (d *deployed) recover(n int) *exec.Cmd {
	if n%4 >= 2 {
		return d.rooftop("recover", "--yes", "--kube", d.workload())
	}
	return d.rooftop("recover", "--yes")
}

func (d *deployed) address() string { return d.workload() + " " }

func (d *deployed) state() any { return d.stated() }

// keeps reports whether only the arguments changed: no annotation of a trial is left.
func (d *deployed) keeps(before, after any) bool {
	was, is := d.container(before.(map[string]any)), d.container(after.(map[string]any))
	args := is["args"]
	defer func() { is["args"] = args }()
	is["args"] = was["args"]
	return !cmp.Equal(args, was["args"]) && cmp.Equal(before, after)
}

// unchanged checks that the object is as it was, and that its pods run it.
func (d *deployed) unchanged(before map[string]any, when string) {
	d.t.Helper()
	if diff := cmp.Diff(before, d.stated()); diff != "" {
		d.t.Errorf("%s: it is not as before:\n%s", when, diff)
	}
}

func TestE2EKubernetes(t *testing.T) {
	t.Parallel()
	m := boot(t, "kubernetes/boot.sh", "serve", []byte(serveScript), "sh", "-c", `curl -sfk -H "Authorization: Bearer admin-token" https://127.0.0.1:6443/api/v1/nodes/node1 | grep -A5 '"type": "Ready"\|KubeletReady' | grep -q KubeletReady && curl -sfk -H "Authorization: Bearer admin-token" https://127.0.0.1:6443/api/v1/namespaces/default/serviceaccounts/default >/dev/null`)
	c := cluster{m}
	role := readFile(t, "../../docs/kubernetes-role.yaml")

	t.Run("forbidden", func(t *testing.T) { // before the account is allowed anything
		d := c.deploy(t, "Deployment", "vllm-no", 8000, "10m")
		out, _ := d.rooftop("doctor", "--kube", "deployment/vllm-no").CombinedOutput()
		for _, want := range []string{"patch deployments.apps", "create pods/portforward", "kubernetes-role.yaml"} {
			if !bytes.Contains(out, []byte(want)) {
				t.Errorf("doctor does not say %q:\n%s", want, out)
			}
		}
		out, err := d.tune().CombinedOutput()
		if err == nil || !bytes.Contains(out, []byte("does not allow it")) {
			t.Errorf("%v:\n%s", err, out)
		}
	})
	roles := "/apis/rbac.authorization.k8s.io/v1/namespaces/default/"
	c.request(t, "POST", roles+"roles", "application/yaml", string(role))
	c.request(t, "POST", roles+"rolebindings", "application/yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: rooftop}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: rooftop}\nsubjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tuner}]\n")

	t.Run("side by side", func(t *testing.T) {
		c.testCanaries(t)
		c.testOperators(t)
		c.testScaled(t)
		t.Run("fleet", func(t *testing.T) { // two pods of one workload, by its name and by labels
			t.Parallel()
			d := c.create(t, "Deployment", "vllm-fleet", 8000, 2, "10m").up(2)
			for _, selected := range []string{d.workload(), "default/app=vllm-fleet"} {
				out, err := d.rooftop("fleet", "--kube", selected, "--duration", "8s", "--json").Output()
				var doc struct {
					Servers []struct{ Name, Deployment, Unread, Outcome string }
				}
				if json.Unmarshal(out, &doc) != nil || len(doc.Servers) != 2 {
					t.Fatalf("%s: %v\n%s", selected, err, out)
				}
				for _, s := range doc.Servers {
					if !strings.HasPrefix(s.Name, "vllm-fleet-") || s.Deployment != d.workload() || s.Unread != "" || s.Outcome != "no-load" {
						t.Errorf("%s: %+v", selected, s)
					}
				}
			}
		})
		t.Run("kept", func(t *testing.T) {
			t.Parallel()
			d := c.deploy(t, "Deployment", "vllm-kept", 8000, "10m")
			if printed := testKept(t, d); strings.Contains(printed, "<secret>") {
				t.Error("a secret of the object was printed")
			}
			if err := d.command("grep", "-rl", "secret>", filepath.Join(d.dir, "shared", d.name)).Run(); err == nil {
				t.Error("a secret of the object was stored")
			}
		})
		for _, kind := range []string{"Deployment", "StatefulSet"} {
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				testPutBack(t, func(t *testing.T, _, port int) managed {
					return c.deploy(t, kind, fmt.Sprintf("vllm-%s-%d", strings.ToLower(kind), port), map[bool]int{true: 9001, false: 8000}[port > 9000], "10m")
				})
			})
		}
		t.Run("no room", func(t *testing.T) {
			t.Parallel()
			d := c.deploy(t, "Deployment", "vllm-big", 8000, "1100m")
			before := d.stated()
			out, _ := d.tune().Output()
			said := told(ofType(eventsOf(t, out), "error"))
			for _, want := range []string{"Insufficient cpu", "strategy.type Recreate"} {
				if !strings.Contains(said, want) {
					t.Errorf("%q is not said:\n%s", want, told(eventsOf(t, out)))
				}
			}
			d.unchanged(before, "after a change without room")
		})
		t.Run("owned", func(t *testing.T) {
			t.Parallel()
			d := c.deploy(t, "Deployment", "vllm-helm", 8000, "10m")
			d.request(t, "PATCH", d.path(), "application/merge-patch+json", `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"Helm"}}}`)
			out, err := d.tune().CombinedOutput()
			if err == nil || !bytes.Contains(out, []byte("helm upgrade")) || !bytes.Contains(out, []byte("--force-owned")) {
				t.Errorf("%v:\n%s", err, out)
			}
		})
		t.Run("changed by someone else", func(t *testing.T) {
			t.Parallel()
			d := c.deploy(t, "Deployment", "vllm-two", 8000, "10m")
			cmd, events := untilEvent(t, d.tune(), "server-up")
			d.request(t, "PATCH", d.path(), "application/json-patch+json", `[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--seed=7"}]`)
			before := d.container(d.stated())["args"]
			d.output("pkill", "-INT", "-f", "tune .*"+d.workload())
			out, _ := io.ReadAll(events)
			_ = cmd.Wait()
			if !bytes.Contains(out, []byte("else changed the container vllm")) {
				t.Errorf("it does not report that someone else changed it:\n%s", out)
			}
			if diff := cmp.Diff(before, d.container(d.stated())["args"]); diff != "" {
				t.Errorf("the change by someone else is lost:\n%s", diff)
			}
		})
		t.Run("rolled back by someone else", func(t *testing.T) {
			t.Parallel()
			d := c.deploy(t, "Deployment", "vllm-back", 8000, "10m")
			before := d.container(d.stated())["args"]
			cmd, events := untilEvent(t, d.tune(), "server-up")
			args, _ := json.Marshal(before)
			d.request(t, "PATCH", d.path(), "application/json-patch+json", fmt.Sprintf(`[{"op":"replace","path":"/spec/template/spec/containers/0/args","value":%s},{"op":"remove","path":"/metadata/annotations/rooftop.dev~1trial"}]`, args))
			out, _ := io.ReadAll(events)
			if err := cmd.Wait(); err == nil || !bytes.Contains(out, []byte("else ended the trial of "+d.workload())) || bytes.Contains(out, []byte("could not be reverted")) {
				t.Errorf("%v, and it is not said who ended the trial, or a revert failed:\n%s", err, told(eventsOf(t, out)))
			}
			if diff := cmp.Diff(before, d.container(d.stated())["args"]); diff != "" {
				t.Errorf("a change that someone else rolled back was made again:\n%s", diff)
			}
		})
	})
	c.testIll(t)
}

// output runs a command on the machine that must succeed.
func (d *deployed) output(argv ...string) string {
	d.t.Helper()
	out, err := d.command(argv...).CombinedOutput()
	if err != nil {
		d.t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return string(out)
}
