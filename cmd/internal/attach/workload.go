package attach

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/kube"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/facts"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

// reach opens an address of this machine that leads to a pod of the workload of --kube until the program ends.
// There need not be a pod yet.
func (l *Locator) reach(ctx context.Context) error {
	w, err := l.o.NamedWorkload()
	if err != nil {
		return err
	}
	tunnel, err := w.Listen(ctx)
	if err != nil {
		return err
	}
	l.workload, l.tunnel = w, tunnel
	l.Target, err = ParseTarget(tunnel.URL())
	return err
}

// NamedWorkload returns the workload of --kube. It contacts nothing. The error is a usage error.
func (o *Options) NamedWorkload() (*kube.Workload, error) {
	return ofCluster(o, (*kube.Cluster).Parse)
}

// Unreached returns the error of a server that does not answer, for a workload in the words of its cluster.
func (l *Locator) Unreached(err error) error {
	if l.tunnel == nil || err == nil {
		return err
	}
	why := cmp.Or(l.workload.Silent(), l.tunnel.Why())
	if why == nil {
		return err
	}
	var coded *cli.CodedError
	if errors.As(err, &coded) {
		return cli.Fail(coded.Code, why)
	}
	return why
}

// Away reports whether an error of [Locator.Open] means that the server does not answer.
func (l *Locator) Away(err error) bool {
	return errors.Is(err, collect.ErrUnreachable) || err != nil && l.tunnel != nil && l.tunnel.Why() != nil
}

// Replica is one of many servers: a pod that --kube selects, or a server of a list.
type Replica struct {
	Name    string   // of the pod, or the address
	Owner   string   // the workload that made it, as deployment/NAME; "" if none did
	Command string   // line that shows the server alone, "" if there is none
	Locator *Locator // leads to it
	Close   func()   // ends the connection to it
	Err     error    // why it cannot be reached
}

// Replicas returns the pods that --kube selects: those of a workload, or those with labels. The error has the
// exit code.
func (o *Options) Replicas(ctx context.Context) ([]Replica, error) {
	selection, err := o.selected()
	if err != nil {
		return nil, err
	}
	pods, err := selection.Replicas(ctx)
	if err == nil && len(pods) == 0 {
		err = fmt.Errorf("--kube %s: there is no such pod; a workload is [NAMESPACE/]KIND/NAME, and labels are [NAMESPACE/]KEY=VALUE", o.Kube)
	}
	if err != nil {
		return nil, cli.Fail(cli.ExitUnreachable, err)
	}
	var list []Replica
	for i := range pods {
		p := &pods[i]
		r := Replica{Name: p.Pod.Metadata.Name, Owner: p.Owner(), Close: func() {}}
		if workload := p.Workload.Namespace + "/" + r.Owner; r.Owner != "" {
			if _, err := p.Workload.Parse(workload); err == nil {
				r.Command = launch.Line("rooftop", "tune", "--kube", workload)
			}
		}
		one := *o
		one.Kube = p.Workload.Namespace + "/pod/" + r.Name
		r.Locator = NewLocator(&one)
		if tunnel, err := p.Workload.ListenTo(ctx, &p.Pod); err != nil {
			r.Err = err
		} else {
			r.Close = tunnel.Close
			r.Locator.workload, r.Locator.tunnel, r.Locator.pod = p.Workload, tunnel, &p.Pod
			r.Locator.Target, r.Err = ParseTarget(tunnel.URL())
		}
		list = append(list, r)
	}
	return list, nil
}

// CheckReplicas rejects a --kube that selects nothing, before the cluster is contacted. The error is a usage error.
func (o *Options) CheckReplicas() error {
	_, err := o.selected()
	return err
}

func (o *Options) selected() (*kube.Selection, error) {
	return ofCluster(o, (*kube.Cluster).Select)
}

// ofCluster returns what --kube names in the cluster of --context. The error is a usage error.
func ofCluster[T any](o *Options, parse func(*kube.Cluster, string) (*T, error)) (*T, error) {
	cluster, err := kube.Connect(o.Context)
	if err != nil {
		return nil, cli.Usagef("--kube: %w", err)
	}
	named, err := parse(cluster, o.Kube)
	if err != nil {
		return nil, cli.Usagef("--kube: %w", err)
	}
	return named, nil
}

// learnPod reads the launch from the one pod that the options lead to.
func (a *Server) learnPod(ctx context.Context, in *facts.Inputs, pod *kube.Pod) {
	if config := a.Workload.PodConfig(pod); config != nil {
		UseLaunch(in, config)
	} else {
		a.Miss(launchCommand, "no container of the pod starts an inference server that rooftop knows", engine.WithoutLaunch)
	}
	a.learnNode(ctx, in, pod)
}

// learnNode reads the GPU of the node of a pod.
func (a *Server) learnNode(ctx context.Context, in *facts.Inputs, pod *kube.Pod) {
	var err error
	if in.NodeGPU, in.NodeGPULabel, err = a.Workload.GPU(ctx, pod); err != nil {
		a.Miss("labels of the pod's node", err.Error(), "name the GPU with --gpu for the ceilings")
	}
	in.NodeGPULabel += " of its node"
	a.Header.Notes = append(a.Header.Notes, "read through the API server, from pod "+pod.Metadata.Name)
}

// learnWorkload reads the launch from the workload's object.
func (a *Server) learnWorkload(ctx context.Context, in *facts.Inputs) {
	o, err := a.Workload.Read(ctx)
	if err != nil {
		a.Miss(launchCommand, err.Error(), engine.WithoutLaunch)
		return
	}
	a.object = o
	if config := a.Workload.Config(o); config != nil {
		UseLaunch(in, config)
		in.LaunchIn = a.Workload.String()
	}
	if pods, err := a.Workload.Pods(ctx, o); err == nil && len(pods) > 0 {
		a.learnNode(ctx, in, &pods[0])
	}
	if n := o.Replicas(); n > 1 {
		a.Header.Notes = append(a.Header.Notes, fmt.Sprintf("%s has %d pods; the readings come from one of them", a.Workload, n))
	}
}

// around returns a function that reports that the workload was scaled since its last call, or "" if it was not or the
// cluster cannot be reached; nil for a server that is not a workload.
func (a *Server) around() func(context.Context) string {
	if a.Workload == nil || a.object == nil {
		return nil
	}
	was := a.object.Replicas()
	return func(ctx context.Context) string {
		o, err := a.Workload.Read(ctx)
		if err != nil || o.Replicas() == was {
			return ""
		}
		text := fmt.Sprintf("%s was scaled from %d to %d pods: the pod that is measured gets another share of the traffic", a.Workload, was, o.Replicas())
		was = o.Replicas()
		if name, err := a.Workload.Autoscaler(ctx); err == nil && name != "" {
			text += "; the HorizontalPodAutoscaler " + name + " scales it"
		}
		return text
	}
}

// Access returns a check for each thing that rooftop does with the cluster of --kube; none without it.
func (o *Options) Access(ctx context.Context) ([]tuning.Check, error) {
	if o.Kube == "" {
		return nil, nil
	}
	w, err := o.NamedWorkload()
	if err != nil {
		return nil, err
	}
	verbs, err := w.Verbs(ctx)
	if err != nil {
		return nil, cli.Fail(cli.ExitUnreachable, err)
	}
	var list []tuning.Check
	for i := range verbs {
		v := &verbs[i]
		c := tuning.Check{For: "server", Name: "cluster: " + v.String(), State: tuning.CheckOK, Found: "allowed in the namespace " + w.Namespace}
		if !v.Allowed {
			c.State, c.Found = tuning.CheckBad, cmp.Or(v.Reason, "this account is not allowed it in the namespace "+w.Namespace)
			if v.Canary {
				c.State = tuning.CheckWarn
			}
			c.Effect, c.Next = "rooftop cannot "+v.For, "give it the Role of docs/kubernetes-role.yaml, by a RoleBinding in "+w.Namespace
		}
		list = append(list, c)
	}
	return list, nil
}
