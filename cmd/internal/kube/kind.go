package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// kind is a kind of object that keeps pods of a template running.
type kind struct {
	name                     string   // as kubectl prints it, in lower case
	names                    []string // further ones that kubectl accepts
	group, version, resource string
	// containers are the places in an object that may have the containers of its pods, a list or one container.
	// The first that is there counts.
	containers []string
	ordered    bool // pods are replaced one after another, and each is waited for

	// The fields below are for kinds that an operator makes pods for. They are not part of Kubernetes.

	pods  string // selects the pods of an object, with {} for its name; "" if the object itself does
	alone string // name in the pods of a container that is not in a list
	adds  bool   // the operator adds arguments of its own before or after those of the object
}

// kinds are those that rooftop can read and change. Places and labels are those of KServe 0.16
// (pkg/apis/serving, pkg/constants) and LeaderWorkerSet 0.7 (api/leaderworkerset/v1).
var kinds = []kind{
	{name: "deployment", names: []string{"deployments", "deploy"}, group: "apps", version: "v1", resource: "deployments", containers: []string{"/spec/template/spec/containers"}},
	{name: "statefulset", names: []string{"statefulsets", "sts"}, group: "apps", version: "v1", resource: "statefulsets", containers: []string{"/spec/template/spec/containers"}, ordered: true},
	{
		name: "inferenceservice", names: []string{"inferenceservices", "isvc"}, group: kserve, version: "v1beta1", resource: "inferenceservices",
		containers: []string{"/spec/predictor/model", "/spec/predictor/containers"},
		pods:       kserve + "/inferenceservice={},component=predictor", alone: "kserve-container", adds: true,
	},
	{name: "servingruntime", names: []string{"servingruntimes"}, group: kserve, version: "v1alpha1", resource: "servingruntimes", containers: []string{"/spec/containers"}, pods: kserve + "/inferenceservice={},component=predictor", adds: true},
	{
		name: "llminferenceservice", names: []string{"llminferenceservices", "llmisvc"}, group: kserve, version: "v1alpha1", resource: "llminferenceservices",
		containers: []string{"/spec/template/containers"},
		pods:       "app.kubernetes.io/name={},app.kubernetes.io/component in (llminferenceservice-workload,llminferenceservice-workload-leader)", adds: true,
	},
	{
		name: "leaderworkerset", names: []string{"leaderworkersets", "lws"}, group: "leaderworkerset.x-k8s.io", version: "v1", resource: "leaderworkersets",
		containers: []string{"/spec/leaderWorkerTemplate/leaderTemplate/spec/containers", "/spec/leaderWorkerTemplate/workerTemplate/spec/containers"},
		pods:       "leaderworkerset.sigs.k8s.io/name={},leaderworkerset.sigs.k8s.io/worker-index=0", ordered: true,
	},
}

const kserve = "serving.kserve.io"

// kindOf returns the kind of a name that kubectl accepts; nil if rooftop cannot read it.
func kindOf(name string) *kind {
	name = strings.ToLower(name)
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name || slices.Contains(k.names, name) })
	if i < 0 {
		return nil
	}
	return &kinds[i]
}

// kindNames lists the names of all kinds.
func kindNames() string {
	var list []string
	for i := range kinds {
		list = append(list, kinds[i].name)
	}
	last := len(list) - 1
	return strings.Join(list[:last], ", ") + " or " + list[last]
}

// locate finds the containers in the text of an object.
func (w *Workload) locate(o *Object, text json.RawMessage) error {
	for _, path := range w.kind.containers {
		found := lookup(text, path)
		if len(found) == 0 || string(found) == "null" {
			continue
		}
		o.path, o.single = path, found[0] == '{'
		if list := &o.Spec.Template.Spec.Containers; o.single {
			*list = make([]Container, 1)
			if err := json.Unmarshal(found, &(*list)[0]); err != nil {
				return fmt.Errorf("%s: %s: %w", w, path, err)
			}
			(*list)[0].Name = w.kind.alone
		} else if err := json.Unmarshal(found, list); err != nil {
			return fmt.Errorf("%s: %s: %w", w, path, err)
		}
		return nil
	}
	places := strings.NewReplacer(" or /", " or ", "/", ".").Replace(strings.Join(w.kind.containers, " or ")[1:])
	return fmt.Errorf("%s has no container at %s, where rooftop would set arguments", w, places)
}

// lookup returns the value at a path of JSON; nil if there is none.
func lookup(text json.RawMessage, path string) json.RawMessage {
	for _, name := range strings.Split(path, "/")[1:] {
		var fields map[string]json.RawMessage
		if json.Unmarshal(text, &fields) != nil {
			return nil
		}
		text = fields[name]
	}
	return text
}

// ContainerPath returns the path of the container at a position of the object, for a JSON patch.
func (o *Object) ContainerPath(i int) string {
	if o.single {
		return o.path
	}
	return o.path + "/" + strconv.Itoa(i)
}

// Operator reports whether an operator makes the pods of the workload, and not Kubernetes itself.
func (w *Workload) Operator() bool { return w.kind.pods != "" }

// count takes the state of an object that an operator makes pods for from its pods.
func (w *Workload) count(ctx context.Context, o *Object) error {
	name := w.Name
	if w.kind.name == "servingruntime" {
		users, err := w.users(ctx)
		if err != nil {
			return err
		}
		if len(users) != 1 {
			return fmt.Errorf("%s is of %d InferenceServices (%s), and rooftop changes a ServingRuntime of one only: set the flag in spec.predictor.model.args of one of them", w, len(users), strings.Join(users, ", "))
		}
		name = users[0]
	}
	var err error
	if o.Spec.Selector, err = metav1.ParseToLabelSelector(strings.ReplaceAll(w.kind.pods, "{}", name)); err != nil {
		return err
	}
	pods, err := w.Pods(ctx, o)
	if err != nil {
		return err
	}
	s := &o.Status
	s.ObservedGeneration, s.Replicas, s.UpdatedReplicas, s.AvailableReplicas = o.Metadata.Generation, len(pods), 0, 0
	for i := range pods {
		if pods[i].Current {
			s.UpdatedReplicas++
		}
		if pods[i].Ready() {
			s.AvailableReplicas++
		}
	}
	o.Spec.Replicas = new(max(o.Replicas(), len(pods)))
	return nil
}

// users returns the InferenceServices that name a ServingRuntime.
func (w *Workload) users(ctx context.Context) (names []string, err error) {
	var list struct {
		Items []struct {
			Metadata metav1.ObjectMeta
			Spec     struct {
				Predictor struct{ Model struct{ Runtime string } }
			}
		}
	}
	err = w.get(ctx, "/apis/"+kserve+"/v1beta1/namespaces/"+w.Namespace+"/inferenceservices", nil, &list)
	for i := range list.Items {
		if list.Items[i].Spec.Predictor.Model.Runtime == w.Name {
			names = append(names, list.Items[i].Metadata.Name)
		}
	}
	return names, err
}

// changes reports whether steps of a JSON patch change a container of an object.
func (k *kind) changes(list []Operation) bool {
	return slices.ContainsFunc(list, func(step Operation) bool {
		return step.Op != "test" && slices.ContainsFunc(k.containers, func(path string) bool { return strings.HasPrefix(step.Path, path+"/") })
	})
}

// current returns the pods that run the object's present settings.
func (w *Workload) current(ctx context.Context) (map[types.UID]bool, error) {
	o, err := w.Read(ctx)
	if err != nil {
		return nil, err
	}
	pods, err := w.Pods(ctx, o)
	list := map[types.UID]bool{}
	for i := range pods {
		list[pods[i].Metadata.UID] = pods[i].Current
	}
	return list, err
}
