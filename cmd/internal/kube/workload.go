package kube

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Workload is an object of a cluster whose pods run a server.
type Workload struct {
	*Cluster
	kind      *kind
	Namespace string
	Name      string
	Container string // that runs the server

	// before has the pods that ran the settings before the object's latest change. They do not run the present ones,
	// although an operator that adds arguments may make it look so.
	before map[types.UID]bool
}

// Parse reads [NAMESPACE/]KIND/NAME. The container is found by Read.
func (c *Cluster) Parse(text string) (*Workload, error) {
	parts := strings.Split(text, "/")
	namespace := c.namespace
	if len(parts) == 3 {
		namespace, parts = parts[0], parts[1:]
	}
	if len(parts) != 2 || slices.Contains(parts, "") || namespace == "" {
		return nil, fmt.Errorf("%q names no workload: write [NAMESPACE/]KIND/NAME, as in deployment/vllm; labels are for rooftop fleet", text)
	}
	k := kindOf(parts[0])
	if k == nil {
		return nil, fmt.Errorf("%q is not a kind that rooftop can read: use %s", parts[0], kindNames())
	}
	return &Workload{Cluster: c, kind: k, Namespace: namespace, Name: parts[1]}, nil
}

// Known returns the workload of a launch that an earlier rooftop stored. It contacts nothing.
func Known(l *launcher.Workload) (*Workload, error) {
	c, err := Connect(l.Context)
	if err != nil {
		return nil, err
	}
	if c.Server != l.Server {
		return nil, fmt.Errorf("the kubeconfig names the cluster at %s, but the change was made in the cluster at %s: use the kubeconfig of that time, with its context %s", c.Server, l.Server, cmp.Or(l.Context, "of the pod"))
	}
	w, err := c.Parse(l.Namespace + "/" + l.Kind + "/" + l.Name)
	if err != nil {
		return nil, err
	}
	w.Container = l.Container
	return w, nil
}

// Patient returns the workload with a connection of its own, which tries requests again for a time while the API
// server cannot be reached.
func (w *Workload) Patient(within time.Duration) *Workload {
	cluster, workload := *w.Cluster, *w
	cluster.Patience = within
	workload.Cluster = &cluster
	return &workload
}

// Stored returns what a later rooftop needs to find the workload again.
func (w *Workload) Stored() *launcher.Workload {
	return &launcher.Workload{Context: w.Context, Server: w.Server, Namespace: w.Namespace, Kind: w.kind.name, Name: w.Name, Container: w.Container}
}

// String returns what kubectl calls the workload: "deployment/vllm".
func (w *Workload) String() string { return w.kind.name + "/" + w.Name }

// Place returns the workload with its namespace and cluster: "deployment/vllm in default of 10.0.0.1:6443".
func (w *Workload) Place() string {
	at := w.Server
	if u, err := url.Parse(w.Server); err == nil {
		at = u.Host
	}
	return w.String() + " in " + w.Namespace + " of " + at
}

func (w *Workload) path() string {
	return "/apis/" + w.kind.group + "/" + w.kind.version + "/namespaces/" + w.Namespace + "/" + w.kind.resource + "/" + w.Name
}

// Patch changes the object by a JSON patch, whose tests prevent the change if someone else has changed the object.
func (w *Workload) Patch(ctx context.Context, list []Operation) (*Object, error) {
	earlier := w.before
	if w.kind.adds && w.kind.changes(list) {
		before, err := w.current(ctx)
		if err != nil {
			return nil, err
		}
		w.before = before
	}
	o := new(Object)
	err := w.patch(ctx, w.path(), list, o)
	if err != nil && !away(err) { // it was refused
		w.before = earlier
	}
	return o, err
}

// Object is a workload as the API server has it.
type Object struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Spec       struct {
		Replicas *int                  `json:"replicas"`
		Selector *metav1.LabelSelector `json:"selector"`
		Strategy struct {
			Type string `json:"type"`
		} `json:"strategy"`
		UpdateStrategy struct {
			Type          string `json:"type"`
			RollingUpdate struct {
				Partition int `json:"partition"`
			} `json:"rollingUpdate"`
		} `json:"updateStrategy"`
		Paused               bool              `json:"paused"`
		Template             Template          `json:"template"`
		VolumeClaimTemplates []json.RawMessage `json:"volumeClaimTemplates"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64  `json:"observedGeneration"`
		Replicas           int    `json:"replicas"`
		UpdatedReplicas    int    `json:"updatedReplicas"`
		AvailableReplicas  int    `json:"availableReplicas"`
		ReadyReplicas      int    `json:"readyReplicas"`
		CurrentRevision    string `json:"currentRevision"`
		UpdateRevision     string `json:"updateRevision"`
		Conditions         []Condition
	} `json:"status"`

	path   string // of its containers
	single bool   // there is one, and no list of them
}

// Template is the template from which the pods of an object are made.
type Template struct {
	Text json.RawMessage `json:"-"` // all of it, as the API server has it
	Spec struct {
		Containers []Container `json:"containers"`
	} `json:"spec"`
}

// UnmarshalJSON reads a template, and keeps its text.
func (t *Template) UnmarshalJSON(text []byte) error {
	type plain Template
	t.Text = bytes.Clone(text)
	return json.Unmarshal(text, (*plain)(t))
}

// Failure returns why Kubernetes cannot make pods, such as a quota; "" if it can.
func (o *Object) Failure() string {
	for _, c := range o.Status.Conditions {
		if c.Type == "ReplicaFailure" && c.Status == "True" {
			return c.Message
		}
	}
	return ""
}

// Container is a container of a pod's specification. Command line and environment stay as the API server has
// them, nil where they are absent.
type Container struct {
	Name      string          `json:"name"`
	Image     string          `json:"image"`
	Command   json.RawMessage `json:"command"`
	Args      json.RawMessage `json:"args"`
	Env       json.RawMessage `json:"env"`
	Ports     []port          `json:"ports"`
	Readiness json.RawMessage `json:"readinessProbe"`
	Startup   json.RawMessage `json:"startupProbe"`
	Resources struct {
		Limits map[string]json.RawMessage `json:"limits"`
	} `json:"resources"`
}

type port struct {
	Name          string `json:"name"`
	ContainerPort int    `json:"containerPort"`
}

// Condition is a condition of an object's status.
type Condition struct {
	Type, Status, Reason, Message string
}

// Read reads the object, and finds the container of the server if it is not known yet.
func (w *Workload) Read(ctx context.Context) (*Object, error) {
	var text json.RawMessage
	if err := w.get(ctx, w.path(), nil, &text); err != nil {
		if apierrors.IsNotFound(err) {
			err = fmt.Errorf("there is no %s in the namespace %s; name it as [NAMESPACE/]KIND/NAME", w, w.Namespace)
		}
		return nil, err
	}
	o := new(Object)
	err := json.Unmarshal(text, o)
	if err == nil {
		err = w.locate(o, text)
	}
	if err == nil && w.Container == "" {
		w.Container, err = w.serving(o)
	}
	if err == nil && w.Operator() {
		err = w.count(ctx, o)
	}
	if err != nil {
		return nil, err
	}
	return o, nil
}

// serving returns the name of the container that runs the server.
func (w *Workload) serving(o *Object) (string, error) {
	list := o.Spec.Template.Spec.Containers
	var serve []string
	for i := range list {
		if list[i].config() != nil {
			serve = append(serve, list[i].Name)
		}
	}
	switch {
	case len(serve) == 1:
		return serve[0], nil
	case len(serve) > 1:
		return "", fmt.Errorf("%s runs several servers in one pod (containers %s)", w, strings.Join(serve, ", "))
	case w.kind.name == "inferenceservice":
		return "", fmt.Errorf("%s starts no inference server that rooftop knows: none of its containers has such a command or arguments; if its ServingRuntime has, name that, as servingruntime/NAME", w)
	}
	return "", fmt.Errorf("%s starts no inference server that rooftop knows: none of its containers has such a command or arguments", w)
}

// Container returns a container of the object and its position; nil if there is none of the name.
func (o *Object) Container(name string) (*Container, int) {
	list := o.Spec.Template.Spec.Containers
	i := slices.IndexFunc(list, func(c Container) bool { return c.Name == name })
	if i < 0 {
		return nil, i
	}
	return &list[i], i
}

// Replicas returns how many pods the object asks for.
func (o *Object) Replicas() int {
	if o.Spec.Replicas == nil {
		return 1
	}
	return *o.Spec.Replicas
}

// Rolled reports whether all pods run the object's template, and nothing else does.
func (o *Object) Rolled() bool {
	s := &o.Status
	if s.ObservedGeneration < o.Metadata.Generation || s.Replicas != o.Replicas() {
		return false
	}
	if s.UpdateRevision != "" && (s.CurrentRevision != s.UpdateRevision || s.ReadyReplicas != o.Replicas()) { // a StatefulSet
		return false
	}
	return s.UpdatedReplicas == o.Replicas() && s.AvailableReplicas == o.Replicas()
}

// Launch returns the launch of a container: its command line, and the variables with values of their own.
// Arguments alone are those of an image that starts vLLM.
func (c *Container) Launch() *launcher.Launch {
	l := &launcher.Launch{Argv: slices.Concat(words(c.Command), words(c.Args))}
	for _, v := range variables(c.Env) {
		if len(v.ValueFrom) == 0 {
			l.Env = append(l.Env, v.Name+"="+v.Value)
		}
	}
	return l
}

// Variable is an environment variable of a container.
type Variable struct {
	Name      string          `json:"name"`
	Value     string          `json:"value,omitempty"`
	ValueFrom json.RawMessage `json:"valueFrom,omitempty"`
}

func words(raw json.RawMessage) (list []string) {
	_ = json.Unmarshal(raw, &list) // the API server has checked it
	return list
}

func variables(raw json.RawMessage) (list []Variable) {
	_ = json.Unmarshal(raw, &list)
	return list
}

// port returns the port of the server in a container.
func (c *Container) port() int {
	if config, err := c.Launch().Config(); err == nil {
		if text, _, given := config.Value("port"); given {
			if n, err := strconv.Atoi(text); err == nil {
				return n
			}
		}
	}
	for _, p := range c.Ports {
		if p.Name == "http" {
			return p.ContainerPort
		}
	}
	if len(c.Ports) == 1 {
		return c.Ports[0].ContainerPort
	}
	n, _ := strconv.Atoi(collect.DefaultPort)
	return n
}

// asks reports whether the pod of a container was made from another one: it has the same command line, and
// the variables. With added it may have further arguments before or after those.
func (c *Container) asks(template *Container, added bool) bool {
	switch command := same(c.Command, template.Command); {
	case !added && (!command || !same(c.Args, template.Args)),
		added && (!command && len(template.Command) > 0 || !contains(words(c.Args), words(template.Args))):
		return false
	}
	have := variables(c.Env)
	for _, want := range variables(template.Env) {
		if !slices.ContainsFunc(have, func(v Variable) bool { return v.Name == want.Name && v.Value == want.Value }) {
			return false
		}
	}
	return true
}

// contains reports whether a list has another one within it. KServe replaces text in double braces.
func contains(list, part []string) bool {
	for i := range len(list) - len(part) + 1 {
		if slices.EqualFunc(list[i:i+len(part)], part, func(a, b string) bool { return a == b || strings.Contains(b, "{{") }) {
			return true
		}
	}
	return false
}

// same reports whether two values of JSON are equal but for spaces.
func same(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return errors.Join(json.Compact(&x, orNull(a)), json.Compact(&y, orNull(b))) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// Config returns the launch of the server from the object; nil if it cannot be parsed.
func (w *Workload) Config(o *Object) *launch.Config {
	c, _ := o.Container(w.Container)
	return c.config()
}

// PodConfig returns the launch of the server from one pod; nil if it cannot be parsed.
func (w *Workload) PodConfig(p *Pod) *launch.Config { return p.container(w.Container).config() }

// config returns the launch of a container, nil if it is nil or starts no inference server.
func (c *Container) config() *launch.Config {
	if c == nil {
		return nil
	}
	config, err := c.Launch().Config()
	if err != nil {
		return nil
	}
	return config
}

// Verbs asks the API server which of rooftop's operations this account may do: first those for reading, then those for
// changes, then those for --canary.
func (w *Workload) Verbs(ctx context.Context) ([]Verb, error) {
	list := []Verb{
		{Verb: "get", Group: w.kind.group, Resource: w.kind.resource, Name: w.Name, For: "read the launch command"},
		{Verb: "list", Resource: "pods", For: "find the pod"},
		{Verb: "create", Resource: "pods", Subresource: "portforward", For: "read the metrics page"},
		{Verb: "patch", Group: w.kind.group, Resource: w.kind.resource, Name: w.Name, For: "make a change and revert it"},
		{Verb: "get", Resource: "pods", Subresource: "log", For: "say why a pod failed"},
		{Verb: "delete", Resource: "pods", For: "restart a server with its current settings, and replace a StatefulSet pod that never became ready"},
	}
	lease := Verb{Group: leaseGroup, Resource: leaseResource, For: "keep others from changing the server meanwhile"}
	for _, verb := range []string{"create", "get", "update", "delete"} {
		lease.Verb = verb
		list = append(list, lease)
		lease.Name = w.Lease("", "").Name() // a new object has no name yet
	}
	if w.kind.name == "servingruntime" {
		list = append(list, Verb{Verb: "list", Group: kserve, Resource: "inferenceservices", For: "find the pods of a ServingRuntime"})
	}
	for _, v := range []Verb{{Verb: "create", Resource: "pods"}, {Verb: "list", Resource: "services"}} {
		v.For, v.Canary = "try a change on one more pod (--canary)", true
		list = append(list, v)
	}
	for i := range list {
		if err := w.ask(ctx, w.Namespace, &list[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Ordered reports whether Kubernetes replaces one pod after another and waits for each: a pod that never gets
// ready then keeps the others, and later ones of its name, from being replaced.
func (w *Workload) Ordered() bool { return w.kind.ordered }

// Delete deletes a pod, which Kubernetes then makes again.
func (w *Workload) Delete(ctx context.Context, p *Pod) error {
	path := "/api/v1/namespaces/" + w.Namespace + "/pods/" + p.Metadata.Name
	err := w.read(ctx, w.client.Delete().AbsPath(path), nil)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Surges reports whether Kubernetes starts a new pod before it ends an old one.
func (o *Object) Surges() bool { return o.Spec.Strategy.Type == "RollingUpdate" }

// Disown removes rooftop from the managers of the object's fields, so that the previous manager gets no conflict. It
// ignores errors.
func (w *Workload) Disown(ctx context.Context, o *Object) {
	i := slices.IndexFunc(o.Metadata.ManagedFields, func(f metav1.ManagedFieldsEntry) bool { return f.Manager == manager })
	if i < 0 {
		return
	}
	at := "/metadata/managedFields/" + strconv.Itoa(i)
	_, _ = w.Patch(ctx, []Operation{{Op: "test", Path: at + "/manager", Value: json.RawMessage(`"` + manager + `"`)}, {Op: "remove", Path: at}})
}

// owners are labels and annotations of objects that something else writes, and what to do instead. {} is replaced
// by the value.
var owners = []struct{ key, value, sentence string }{
	{"app.kubernetes.io/managed-by", "Helm", "Helm wrote it: set the flag in the chart's values and run helm upgrade"},
	{"argocd.argoproj.io/tracking-id", "", "Argo CD keeps it as it is in Git ({}): set the flag there"},
	{"argocd.argoproj.io/instance", "", "Argo CD keeps it as it is in Git (application {}): set the flag there"},
	{"kustomize.toolkit.fluxcd.io/name", "", "Flux keeps it as it is in Git (Kustomization {}): set the flag there"},
	{"helm.toolkit.fluxcd.io/name", "", "Flux keeps it as its HelmRelease {} says: set the flag in its values"},
}

// Owner describes what else writes the object, and would revert a change or lose it; "" if nothing does.
func (o *Object) Owner() string {
	for _, ref := range o.Metadata.OwnerReferences {
		if ref.Controller != nil && *ref.Controller {
			if k := kindOf(ref.Kind); k != nil && strings.HasPrefix(ref.APIVersion, k.group+"/") {
				return fmt.Sprintf("the %s %s makes it: name that, as %s", ref.Kind, ref.Name, launch.Line("--kube", k.name+"/"+ref.Name))
			}
			return fmt.Sprintf("the %s %s makes it: set the flag there", ref.Kind, ref.Name)
		}
	}
	for _, owner := range owners {
		for _, marks := range []map[string]string{o.Metadata.Labels, o.Metadata.Annotations} {
			if v, marked := marks[owner.key]; marked && (owner.value == "" || v == owner.value) {
				return strings.ReplaceAll(owner.sentence, "{}", v)
			}
		}
	}
	return ""
}

// GPUs describes the GPUs that a container asks for: "1 nvidia.com/gpu"; "" if it asks for none.
func (c *Container) GPUs() string {
	for name, n := range c.Resources.Limits {
		if strings.HasSuffix(name, "/gpu") {
			return strings.Trim(string(n), `"`) + " " + name
		}
	}
	return ""
}

// Autoscaler returns the name of a HorizontalPodAutoscaler of the workload, "" if it has none.
func (w *Workload) Autoscaler(ctx context.Context) (string, error) {
	var list struct {
		Items []struct {
			Metadata metav1.ObjectMeta
			Spec     struct{ ScaleTargetRef struct{ Kind, Name string } }
		}
	}
	err := w.get(ctx, "/apis/autoscaling/v2/namespaces/"+w.Namespace+"/horizontalpodautoscalers", nil, &list)
	for i := range list.Items {
		if to := list.Items[i].Spec.ScaleTargetRef; strings.EqualFold(to.Kind, w.kind.name) && to.Name == w.Name {
			return list.Items[i].Metadata.Name, err
		}
	}
	return "", err
}
