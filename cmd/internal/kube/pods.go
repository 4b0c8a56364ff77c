package kube

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Pod is a pod of a workload.
type Pod struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		NodeName   string      `json:"nodeName"`
		Containers []Container `json:"containers"`
	} `json:"spec"`
	Status struct {
		Phase                 string
		Reason, Message       string
		Conditions            []Condition
		InitContainerStatuses []containerStatus
		ContainerStatuses     []containerStatus
	} `json:"status"`
	Current bool `json:"-"` // it was made from the object's template as it is now
}

type containerStatus struct {
	Name         string
	Ready        bool
	RestartCount int
	State        containerState
	LastState    containerState
}

type containerState struct {
	Waiting    *struct{ Reason, Message string }
	Terminated *struct {
		ExitCode        int
		Reason, Message string
	}
}

// Pods returns the pods of a workload, those first that requests should be sent to: ready before others, made
// from the template as it is now before others, the newest first.
func (w *Workload) Pods(ctx context.Context, o *Object) ([]Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(o.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("the selector of %s: %w", w, err)
	}
	list, err := w.list(ctx, "labelSelector", selector.String())
	if err != nil {
		return nil, err
	}
	template, _ := o.Container(w.Container)
	list = slices.DeleteFunc(list, func(p Pod) bool { return p.Metadata.DeletionTimestamp != nil || !w.made(o, &p) })
	for i := range list {
		p := &list[i]
		c := p.container(w.Container)
		p.Current = c != nil && template != nil && c.asks(template, w.kind.adds) && !w.before[p.Metadata.UID]
	}
	slices.SortStableFunc(list, func(a, b Pod) int {
		for _, better := range []func(*Pod) bool{(*Pod).Ready, func(p *Pod) bool { return p.Current }} {
			if x, y := better(&a), better(&b); x != y {
				if x {
					return -1
				}
				return 1
			}
		}
		return b.Metadata.CreationTimestamp.Compare(a.Metadata.CreationTimestamp.Time)
	})
	return list, nil
}

// list returns the pods of the namespace that a selector, of labels or of fields, selects.
func (w *Workload) list(ctx context.Context, kind, selector string) ([]Pod, error) {
	var list struct{ Items []Pod }
	err := w.get(ctx, "/api/v1/namespaces/"+w.Namespace+"/pods", map[string]string{kind: selector}, &list)
	return list.Items, err
}

// made reports whether the workload, or a ReplicaSet in its place, made a pod. Others may have its labels, and
// even its name, but for those that an operator gives to the pods of one object. A ReplicaSet has the name of its Deployment and a hash without a dash.
func (w *Workload) made(o *Object, p *Pod) bool {
	by := metav1.GetControllerOf(&p.Metadata)
	if by == nil {
		return false
	}
	hash, deployed := strings.CutPrefix(by.Name, w.Name+"-")
	return w.Operator() || by.UID == o.Metadata.UID || w.kind.name == "deployment" && by.Kind == "ReplicaSet" && deployed && !strings.Contains(hash, "-")
}

func (p *Pod) container(name string) *Container {
	i := slices.IndexFunc(p.Spec.Containers, func(c Container) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Spec.Containers[i]
}

func (p *Pod) condition(kind string) Condition {
	i := slices.IndexFunc(p.Status.Conditions, func(c Condition) bool { return c.Type == kind })
	if i < 0 {
		return Condition{}
	}
	return p.Status.Conditions[i]
}

// Restarts returns how often containers of a pod were started again.
func (p *Pod) Restarts() int {
	n := 0
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		n += s.RestartCount
	}
	return n
}

// Over reports whether a pod has ended for good, as one that was evicted. Kubernetes keeps some of them.
func (p *Pod) Over() bool { return p.Status.Phase == "Failed" || p.Status.Phase == "Succeeded" }

// Ready reports whether a pod takes requests.
func (p *Pod) Ready() bool { return p.condition("Ready").Status == "True" }

// adrift reports whether Kubernetes calls a pod not ready because the kubelet of its node, which said that it is, has
// been silent for long: the pod may serve all the same.
func (p *Pod) adrift() bool {
	c := p.condition("Ready")
	return c.Status == "False" && c.Reason == "" && c.Message == "" && p.condition("ContainersReady").Status == "True"
}

// cannotStart are reasons of a container that waits and will not start by waiting.
var cannotStart = []string{
	"CrashLoopBackOff", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull",
	"CreateContainerConfigError", "CreateContainerError", "RunContainerError",
}

// Trouble returns why a pod will not serve, in one sentence; "" while it may. hopeless is false if that can
// end without a change to the object: room for the pod.
func (w *Workload) Trouble(ctx context.Context, p *Pod) (why string, hopeless bool) {
	failure := func(format string, a ...any) string {
		return "pod " + p.Metadata.Name + ": " + fmt.Sprintf(format, a...)
	}
	if c := p.condition("PodScheduled"); c.Status == "False" {
		return failure("no node can run it: %s", strings.TrimSuffix(c.Message, ".")), false
	}
	over := p.Over()
	switch alone := metav1.GetControllerOf(&p.Metadata) == nil; {
	case over && !alone:
		return "", false // Kubernetes makes another one in its place
	case over && p.Status.Reason != "":
		return failure("%s", join(p.Status.Reason, p.Status.Message)), true
	case alone && p.Metadata.DeletionTimestamp != nil:
		return failure("it is being deleted: %s", cmp.Or(p.condition("DisruptionTarget").Message, "someone else deleted it")), true
	}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		end := s.State.Terminated
		if end == nil {
			end = s.LastState.Terminated
		}
		waits := s.State.Waiting
		switch {
		case end != nil && end.ExitCode != 0:
			how := fmt.Sprintf("it ended with exit status %d", end.ExitCode)
			if end.Reason == "OOMKilled" {
				how = "it was killed because memory ran out (OOMKilled)"
			}
			if said := w.lastWords(ctx, p, &s); said != "" {
				if c := p.container(s.Name); c != nil {
					said = c.Launch().Hide(said)
				}
				how = said + " (" + how + ")"
			}
			return failure("%s", how), true
		case waits != nil && slices.Contains(cannotStart, waits.Reason):
			return failure("it does not start: %s", join(waits.Reason, waits.Message)), true
		}
	}
	if over {
		return failure("it ended with exit status 0"), true
	}
	return "", false
}

// join joins a reason, which is one word, and a message of a status.
func join(reason, message string) string {
	message, _, _ = strings.Cut(strings.TrimSpace(message), "\n")
	return strings.Trim(reason+": "+message, ": ")
}

// State describes a pod that neither serves nor fails.
func (p *Pod) State() string {
	what := "it is " + strings.ToLower(p.Status.Phase)
	if p.Status.Phase == "Pending" && p.Spec.NodeName != "" && len(p.Status.ContainerStatuses) == 0 {
		what = "the kubelet of its node " + p.Spec.NodeName + " has not begun to start it"
	}
	for _, s := range p.Status.ContainerStatuses {
		if waits := s.State.Waiting; waits != nil {
			what = join(waits.Reason, waits.Message)
		}
	}
	if c := p.condition("Ready"); p.adrift() {
		what = kubeletAway(p.Spec.NodeName)
	} else if p.Status.Phase == "Running" && c.Status == "False" {
		what = "it runs and is not ready: " + cmp.Or(c.Message, c.Reason)
	}
	return "pod " + p.Metadata.Name + ": " + what
}

// lastWords returns the decisive line of the log of a container's process that ended.
func (w *Workload) lastWords(ctx context.Context, p *Pod, s *containerStatus) string {
	const logLines = "400"
	previous := "false"
	if s.State.Terminated == nil {
		previous = "true"
	}
	text, err := w.client.Get().AbsPath("/api/v1/namespaces/"+w.Namespace+"/pods/"+p.Metadata.Name+"/log").
		Param("container", s.Name).Param("previous", previous).Param("tailLines", logLines).Do(ctx).Raw()
	if err != nil {
		return ""
	}
	return launch.FailureReason(text)
}
