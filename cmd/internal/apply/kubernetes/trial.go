package kubernetes

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/kube"
	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// annotation is on an object while a change to it is on trial.
const annotation = "rooftop.dev/trial"

// run is a run of rooftop.
type run struct {
	ID      string `json:"id"`      // also in its journal
	Machine string `json:"machine"` // where rooftop runs
	Process int    `json:"process"` // its PID there
}

func (r *run) String() string {
	if r.Machine == "" {
		return "a rooftop that is not known"
	}
	return fmt.Sprintf("process %d of rooftop on %s", r.Process, r.Machine)
}

// trial is the value of the annotation: who changed what. On a canary pod it is only who.
type trial struct {
	run
	Container string   `json:"container"`
	Revision  string   `json:"revision"` // of the Deployment before the change
	Rest      string   `json:"rest"`     // of the pod template, which the change leaves alone: a hash
	From      settings `json:"from"`
	To        settings `json:"to"`
}

// settings are what rooftop changes of a container, as the API server has it; nil where it is absent.
type settings struct {
	Command json.RawMessage `json:"command,omitempty"`
	Args    json.RawMessage `json:"args,omitempty"`
	Env     json.RawMessage `json:"env,omitempty"`
}

func settingsOf(c *kube.Container) settings { return settings{c.Command, c.Args, c.Env} }

// fields returns the settings by their names in a container.
func (s *settings) fields() [3]struct {
	name  string
	value json.RawMessage
} {
	return [3]struct {
		name  string
		value json.RawMessage
	}{{"command", s.Command}, {"args", s.Args}, {"env", s.Env}}
}

func (s *settings) equal(t *settings) bool {
	a, b := s.fields(), t.fields()
	for i := range a {
		if !same(a[i].value, b[i].value) {
			return false
		}
	}
	return true
}

// same reports whether two lists are equal. The API server stores an empty one as none.
func same(a, b json.RawMessage) bool {
	var x, y []any
	if errors.Join(json.Unmarshal(orNull(a), &x), json.Unmarshal(orNull(b), &y)) != nil {
		return false
	}
	return len(x) == 0 && len(y) == 0 || reflect.DeepEqual(x, y)
}

// with returns the settings that start a launch, given those of another one.
func (s *settings) with(was, target *launcher.Launch) (settings, error) {
	out := *s
	if !slices.Equal(was.Argv, target.Argv) {
		var command, args []string
		if err := errors.Join(json.Unmarshal(orNull(s.Command), &command), json.Unmarshal(orNull(s.Args), &args)); err != nil {
			return out, err
		}
		n := len(command)
		switch {
		case n <= len(target.Argv) && slices.Equal(command, target.Argv[:n]), len(target.Argv) == len(was.Argv) && len(args) > 0:
			if command = target.Argv[:n]; n > 0 {
				out.Command = marshal(command)
			}
			out.Args = list(target.Argv[n:])
		default:
			out.Command, out.Args = marshal(target.Argv), nil
		}
	}
	if !slices.Equal(was.Env, target.Env) {
		var have []json.RawMessage
		if err := json.Unmarshal(orNull(s.Env), &have); err != nil {
			return out, err
		}
		out.Env = list(variables(have, launch.Environ(was.Env), launch.Environ(target.Env)))
	}
	return out, nil
}

// list returns a list as JSON, nil if it is empty: the API server stores none then.
func list[T any](of []T) json.RawMessage {
	if len(of) == 0 {
		return nil
	}
	return marshal(of)
}

// variables returns a container's list of variables with the differences of two environments.
func variables(list []json.RawMessage, was, target map[string]string) []json.RawMessage {
	name := func(raw json.RawMessage) string {
		var v kube.Variable
		_ = json.Unmarshal(raw, &v) // without a name it is none that changes
		return v.Name
	}
	list = slices.DeleteFunc(slices.Clone(list), func(raw json.RawMessage) bool {
		_, had := was[name(raw)]
		_, has := target[name(raw)]
		return had && !has
	})
	var names []string
	for n, value := range target {
		if old, had := was[n]; !had || old != value {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	for _, n := range names {
		set := marshal(kube.Variable{Name: n, Value: target[n]})
		if i := slices.IndexFunc(list, func(raw json.RawMessage) bool { return name(raw) == n }); i >= 0 {
			list[i] = set
		} else {
			list = append(list, set)
		}
	}
	return list
}

// replace returns the steps that replace settings of the container at a path, if they are still there.
func replace(at string, from, to *settings) (list []kube.Operation) {
	a, b := from.fields(), to.fields()
	for i := range a {
		path := at + "/" + a[i].name
		list = append(list, kube.Operation{Op: "test", Path: path, Value: orNull(a[i].value)})
		switch {
		case same(a[i].value, b[i].value):
		case b[i].value == nil:
			list = append(list, kube.Operation{Op: "remove", Path: path})
		default:
			list = append(list, kube.Operation{Op: "add", Path: path, Value: b[i].value}) // replaces as well
		}
	}
	return list
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

// annotationPath is the path of the annotation in an object. RFC 6901 writes a slash in a name as ~1.
var annotationPath = "/metadata/annotations/" + strings.ReplaceAll(annotation, "/", "~1")

// revision is the annotation in which Kubernetes counts the rollouts of a Deployment.
const revision = "deployment.kubernetes.io/revision"

// over reports whether a change was ended long ago. Kubernetes copies annotations of a Deployment into its
// ReplicaSets, from where kubectl rollout undo brings them back, with a later revision and the pod template of the
// change. Another template that starts what the change wrote, as after kubectl rollout restart, still has the change.
func (t *trial) over(o *kube.Object) bool {
	before, err := strconv.Atoi(t.Revision)
	now, errNow := strconv.Atoi(o.Metadata.Annotations[revision])
	if err != nil || errNow != nil || now <= before+1 {
		return false
	}
	container, _ := o.Container(t.Container)
	if container == nil {
		return true
	}
	is := settingsOf(container)
	return !is.equal(&t.To) || t.Rest == restOf(o, t.Container)
}

// restOf returns a hash of the object's pod template without the settings of a container.
func restOf(o *kube.Object, container string) string {
	var template map[string]any
	if json.Unmarshal(o.Spec.Template.Text, &template) != nil {
		return "" // of an operator, which has no revision either
	}
	spec, _ := template["spec"].(map[string]any)
	list, _ := spec["containers"].([]any)
	for _, one := range list {
		if c, _ := one.(map[string]any); c["name"] == container {
			for _, field := range new(settings).fields() {
				delete(c, field.name)
			}
		}
	}
	sum := sha256.Sum256(marshal(template))
	return hex.EncodeToString(sum[:8])
}

// note returns the steps that write the annotation.
func (t *trial) note(o *kube.Object) (list []kube.Operation) {
	if o.Metadata.Annotations == nil {
		list = append(list, kube.Operation{Op: "test", Path: "/metadata/annotations", Value: json.RawMessage("null")},
			kube.Operation{Op: "add", Path: "/metadata/annotations", Value: json.RawMessage("{}")})
	}
	return append(list, kube.Operation{Op: "add", Path: annotationPath, Value: marshal(string(marshal(t)))})
}

// forget returns the steps that remove the annotation, if it is still the same.
func forget(o *kube.Object) []kube.Operation {
	return []kube.Operation{
		{Op: "test", Path: annotationPath, Value: marshal(o.Metadata.Annotations[annotation])},
		{Op: "remove", Path: annotationPath},
	}
}

// trialOf returns the change that is on trial; nil if there is none.
func trialOf(o *kube.Object) (*trial, error) {
	text, on := o.Metadata.Annotations[annotation]
	if !on {
		return nil, nil
	}
	t := new(trial)
	if err := json.Unmarshal([]byte(text), t); err != nil {
		return nil, fmt.Errorf("the annotation %s cannot be read: %w", annotation, err)
	}
	return t, nil
}

// taken returns an error that says who has a change on trial.
func (t *trial) taken(name string) error {
	return fmt.Errorf("a change to %s is on trial already, by %s; if that has ended, 'rooftop recover --kube' puts it back from anywhere", name, &t.run)
}
