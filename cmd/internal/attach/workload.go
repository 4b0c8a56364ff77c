package attach

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/kube"
	"github.com/rooftop-dev/rooftop/engine/facts"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

// Reach sets URL to an address of this machine that leads to a pod of the workload of --kube, if there is one,
// until the program ends. There need not be a pod yet.
func (o *Options) Reach(ctx context.Context) error {
	if o.Kube == "" || o.workload != nil {
		return nil
	}
	w, err := o.NamedWorkload()
	if err != nil {
		return err
	}
	tunnel, err := w.Listen(ctx)
	if err != nil {
		return err
	}
	o.workload, o.tunnel, o.URL = w, tunnel, tunnel.URL()
	return nil
}

// NamedWorkload returns the workload of --kube. It contacts nothing. The error is a usage error.
func (o *Options) NamedWorkload() (*kube.Workload, error) {
	cluster, err := kube.Connect(o.Context)
	if err != nil {
		return nil, cli.Usagef("--kube: %w", err)
	}
	w, err := cluster.Parse(o.Kube)
	if err != nil {
		return nil, cli.Usagef("--kube: %w", err)
	}
	return w, nil
}

// Unreached returns the error of a server that does not answer, for a workload in the words of its cluster.
func (o *Options) Unreached(err error) error {
	if o.tunnel == nil || err == nil || o.tunnel.Why() == nil {
		return err
	}
	why := o.tunnel.Why()
	var coded *cli.CodedError
	if errors.As(err, &coded) {
		return cli.Fail(coded.Code, why)
	}
	return why
}

// learnWorkload reads the launch from the workload's object.
func (a *Server) learnWorkload(ctx context.Context, in *facts.Inputs) {
	o, err := a.Workload.Read(ctx)
	if err != nil {
		a.Miss(launchCommand, err.Error(), "flags come from the page, from rooftop's own flags, or are vLLM's defaults")
		return
	}
	a.object = o
	if config := a.Workload.Config(o); config != nil {
		UseLaunch(in, config)
		in.LaunchIn = a.Workload.String()
	}
	if pods, err := a.Workload.Pods(ctx, o); err == nil && len(pods) > 0 {
		if in.NodeGPU, in.NodeGPULabel, err = a.Workload.GPU(ctx, &pods[0]); err != nil {
			a.Miss("labels of the pod's node", err.Error(), "name the GPU with --gpu for the ceilings")
		}
		a.Header.Notes = append(a.Header.Notes, fmt.Sprintf("read through the API server, from pod %s", pods[0].Metadata.Name))
	}
	if n := o.Replicas(); n > 1 {
		a.Header.Notes = append(a.Header.Notes, fmt.Sprintf("%s has %d pods: the readings are of one of them", a.Workload, n))
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
