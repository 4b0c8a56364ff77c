package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply/manager"
	"github.com/rooftop-dev/rooftop/cmd/internal/kube"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// mostOthers is how many pods are measured beside a canary pod at most. Each takes a connection through the API
// server.
const mostOthers = 8

// canary is a pod with a change beside those of an object: a manager.Copy.
type canary struct {
	w       *Workload
	name    string
	object  *kube.Object // as it was when the pod was made
	others  []kube.Pod   // the pods of the object then
	tunnels []*kube.Tunnel
	looked  time.Time // when Ended last asked the cluster
}

// CheckBeside returns what the user should know before Beside, a sentence each, or the error with which Beside
// would refuse now. It changes nothing.
func (w *Workload) CheckBeside(ctx context.Context) ([]string, error) {
	o, err := w.at.Read(ctx)
	if err != nil {
		return nil, err
	}
	others, services, err := w.checkBeside(ctx, o)
	if err != nil {
		return nil, err
	}
	notes := []string{fmt.Sprintf("a canary pod of %s takes room for one more pod%s", w.Name(), w.needs(o))}
	if len(services) > 0 {
		notes = append(notes, "it gets its share of the requests to the Service "+strings.Join(services, ", "))
	} else {
		notes = append(notes, "this account may not list services, so whether one sends requests to it is not known")
	}
	if len(others) > mostOthers {
		notes = append(notes, fmt.Sprintf("%d of the %d pods of %s are measured beside it", mostOthers, len(others), w.Name()))
	}
	return notes, nil
}

// needs describes the GPUs of a pod: ", with 1 nvidia.com/gpu"; "" without any.
func (w *Workload) needs(o *kube.Object) string {
	if c, _ := o.Container(w.at.Container); c != nil && c.GPUs() != "" {
		return ", with " + c.GPUs()
	}
	return ""
}

// checkBeside returns the pods beside which a canary pod would run, and the Services that would send it
// requests, none if the account may not list them. The error is why a canary pod must not be started.
func (w *Workload) checkBeside(ctx context.Context, o *kube.Object) (others []kube.Pod, services []string, err error) {
	if err := w.changeable(o, true); err != nil { // New has looked for an owner
		return nil, nil, err
	}
	c, _ := o.Container(w.at.Container)
	if c == nil {
		return nil, nil, w.changed()
	}
	is := settingsOf(c)
	switch {
	case w.at.Operator():
		err = fmt.Errorf("an operator makes the pods of %s, and rooftop cannot make one more of them: tune it without --canary", w.Name())
	case !is.equal(&w.from):
		err = w.changed()
	case slices.Contains(w.lacks, "create pods"):
		err = fmt.Errorf("this account may not create pods in the namespace %s, as a canary pod of %s: '%s' says more", w.at.Namespace, w.Name(), doctorCommand(w.Name()))
	case len(o.Spec.VolumeClaimTemplates) > 0:
		err = fmt.Errorf("%s gives each pod volumes of its own (volumeClaimTemplates), which a canary pod would lack: tune it without --canary", w.Name())
	case c.Readiness == nil && c.Startup == nil:
		err = fmt.Errorf("the container %s of %s has no readinessProbe, so a canary pod would get requests before it can answer: add one, or tune it without --canary", c.Name, w.Name())
	default:
		err = w.alone(ctx, o)
	}
	if err != nil {
		return nil, nil, err
	}
	others, err = w.at.Pods(ctx, o)
	others = slices.DeleteFunc(others, func(p kube.Pod) bool { return !p.Ready() || !p.Current })
	if err == nil && len(others) == 0 {
		err = fmt.Errorf("%s has no pod that is ready, so there is nothing to compare a canary pod with", w.Name())
	}
	if err != nil || slices.Contains(w.lacks, "list services") {
		return others, nil, err
	}
	pod, err := w.pod(o, &w.from)
	if err != nil {
		return nil, nil, err
	}
	services, err = w.at.Services(ctx, pod)
	if err == nil && len(services) == 0 {
		err = fmt.Errorf("no Service of the namespace %s selects the pods of %s, so a canary pod would get no requests: tune it without --canary", w.at.Namespace, w.Name())
	}
	return others, services, err
}

// pod returns a canary pod with settings.
func (w *Workload) pod(o *kube.Object, set *settings) (*kube.NewPod, error) {
	return w.at.NewCanary(o, &kube.Container{Command: set.Command, Args: set.Args, Env: set.Env}, annotation, string(marshal(w.run())))
}

// runOf returns the run that made a canary pod.
func runOf(p *kube.Pod) *run {
	r := new(run)
	_ = json.Unmarshal([]byte(p.Metadata.Annotations[annotation]), r) // unknown if someone else changed it
	return r
}

// Beside starts a canary pod: one more pod of the object with a change, behind the same Services.
func (w *Workload) Beside(ctx context.Context, change *manager.Change) (manager.Copy, error) {
	c := &canary{w: w}
	pod, err := c.prepare(ctx, change)
	if err != nil {
		return nil, &manager.UntouchedError{Err: err}
	}
	c.name = pod.Metadata.Name
	// A request that is given up may still make the pod later.
	start, cancel := context.WithTimeout(context.WithoutCancel(ctx), awayWithin)
	err = w.at.Start(start, pod)
	cancel()
	if err != nil {
		err = fmt.Errorf("start a canary pod of %s: %w", w.Name(), err)
	} else {
		err = c.await(ctx)
	}
	if err == nil {
		return c, nil
	}
	own := new(manager.CopyFailedError)
	failed := errors.As(err, &own)
	if hidden := w.hide(err.Error()); hidden != err.Error() {
		err = errors.New(hidden)
	}
	if failed {
		err = &manager.CopyFailedError{Err: err}
	}
	if left := c.Remove(context.WithoutCancel(ctx)); left != nil {
		return nil, fmt.Errorf("%w; and %w", err, left)
	}
	return nil, &manager.UntouchedError{Err: err}
}

// prepare checks that a canary pod may be started, and returns it.
func (c *canary) prepare(ctx context.Context, change *manager.Change) (*kube.NewPod, error) {
	target, err := c.w.target(change.All)
	if err != nil {
		return nil, err
	}
	set, err := c.w.from.with(c.w.kept, target)
	if err != nil {
		return nil, err
	}
	if err := c.w.lease.Take(ctx, false); err != nil {
		return nil, err
	}
	if c.object, err = c.w.at.Read(ctx); err != nil {
		return nil, err
	}
	if c.others, _, err = c.w.checkBeside(ctx, c.object); err != nil {
		return nil, err
	}
	return c.w.pod(c.object, &set)
}

// find returns the canary pod as it is now; nil if it is gone.
func (c *canary) find(ctx context.Context) (*kube.Pod, error) {
	list, err := c.w.at.Canaries(ctx, c.object)
	i := slices.IndexFunc(list, func(p kube.Pod) bool { return p.Metadata.Name == c.name })
	if err != nil || i < 0 {
		return nil, err
	}
	return &list[i], nil
}

// gone is the error of a canary pod that is no longer there.
func (c *canary) gone() error {
	return fmt.Errorf("the canary pod %s is gone: someone else deleted it", c.name)
}

// await returns when the canary pod takes requests, with tunnels to it and to the others. The error is why it
// never will.
func (c *canary) await(ctx context.Context) error {
	var crowded time.Time
	for deadline := time.Now().Add(c.w.within); ; {
		p, err := c.find(ctx)
		switch {
		case err != nil:
			return err
		case p == nil:
			return c.gone()
		}
		if err := c.compare(ctx); err != nil {
			return err
		}
		if p.Ready() {
			return c.reach(ctx, p)
		}
		switch why, hopeless := c.w.at.Trouble(ctx, p); {
		case hopeless:
			return &manager.CopyFailedError{Err: errors.New(why)}
		case why == "":
			crowded = time.Time{}
		case crowded.IsZero():
			crowded = time.Now()
		case time.Since(crowded) > roomWithin:
			return fmt.Errorf("%s; a canary pod takes room for one more pod%s", why, c.w.needs(c.object))
		}
		if time.Now().After(deadline) {
			return &manager.CopyFailedError{Err: fmt.Errorf("the canary pod of %s takes no requests within %s: %s", c.w.Name(), figure.Duration(c.w.within), p.State())}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(rolloutPoll):
		}
	}
}

// reach opens tunnels to the canary pod and to the others.
func (c *canary) reach(ctx context.Context, p *kube.Pod) error {
	for _, to := range append([]kube.Pod{*p}, c.others[:min(len(c.others), mostOthers)]...) {
		t, err := c.w.at.ListenTo(ctx, &to)
		if err != nil {
			return err
		}
		c.tunnels = append(c.tunnels, t)
	}
	return nil
}

// Name returns what the user calls the canary pod.
func (c *canary) Name() string { return "pod " + c.name }

// URL returns a base URL that leads to the canary pod.
func (c *canary) URL() string { return c.tunnels[0].URL() }

// Others returns a base URL for each of the others that are measured.
func (c *canary) Others() (list []string) {
	for _, t := range c.tunnels[1:] {
		list = append(list, t.URL())
	}
	return list
}

// Ended returns why the pods are no longer one canary pod and those that ran when it was made, all ready; nil
// while they are, or if the cluster cannot be asked.
func (c *canary) Ended(ctx context.Context) error {
	if time.Since(c.looked) < endedEvery {
		return nil
	}
	c.looked = time.Now()
	p, err := c.find(ctx)
	switch {
	case err != nil:
		return nil //nolint:nilerr // that the cluster cannot be asked says nothing of the pod
	case p == nil:
		return c.gone()
	}
	if why, hopeless := c.w.at.Trouble(ctx, p); hopeless || !p.Ready() {
		return &manager.CopyFailedError{Err: errors.New(c.w.hide(cmp.Or(why, p.State())))}
	}
	return c.compare(ctx)
}

// compare returns why the others are not those that ran when the canary pod was made; nil if they are, or if
// the cluster cannot be asked.
func (c *canary) compare(ctx context.Context) error {
	o, err := c.w.at.Read(ctx)
	if err != nil {
		return nil //nolint:nilerr // that the cluster cannot be asked says nothing of the pods
	}
	pods, err := c.w.at.Pods(ctx, o)
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	if now, was := o.Replicas(), c.object.Replicas(); now != was {
		return fmt.Errorf("%s was scaled from %d to %d pods meanwhile", c.w.Name(), was, now)
	}
	if o.Metadata.Generation != c.object.Metadata.Generation {
		return fmt.Errorf("someone else changed %s meanwhile", c.w.Name())
	}
	now := map[string]*kube.Pod{}
	for i := range pods {
		if !pods[i].Over() {
			now[string(pods[i].Metadata.UID)] = &pods[i]
		}
	}
	for i := range c.others {
		was := &c.others[i]
		switch is := now[string(was.Metadata.UID)]; {
		case is == nil:
			return fmt.Errorf("pod %s was ended meanwhile", was.Metadata.Name)
		case is.Restarts() != was.Restarts():
			why, _ := c.w.at.Trouble(ctx, is)
			return errors.New(c.w.hide(cmp.Or(why, fmt.Sprintf("pod %s was started again meanwhile", was.Metadata.Name))))
		case !is.Ready():
			return errors.New(is.State())
		}
		delete(now, string(was.Metadata.UID))
	}
	for _, p := range now {
		return fmt.Errorf("pod %s was started meanwhile", p.Metadata.Name)
	}
	return nil
}

// Remove deletes the canary pod, and returns when it is gone.
func (c *canary) Remove(ctx context.Context) error {
	for _, t := range c.tunnels {
		t.Close()
	}
	return c.w.remove(ctx, c.object)
}

// remove deletes the canary pods of the run, and returns when they are gone.
func (w *Workload) remove(ctx context.Context, o *kube.Object) error {
	for deadline := time.Now().Add(w.within); ; {
		list, err := w.at.Canaries(ctx, o)
		if err != nil {
			return fmt.Errorf("find the canary pod of %s to delete it: %w", w.Name(), err)
		}
		list = slices.DeleteFunc(list, func(p kube.Pod) bool { return w.id != "" && runOf(&p).ID != w.id })
		if len(list) == 0 {
			return nil
		}
		for i := range list {
			if p := &list[i]; p.Metadata.DeletionTimestamp == nil {
				if err := w.at.Delete(ctx, p); err != nil {
					return fmt.Errorf("delete the canary pod %s: %w", p.Metadata.Name, err)
				}
			}
		}
		if name := list[0].Metadata.Name; time.Now().After(deadline) {
			return fmt.Errorf("the canary pod %s is deleted and has not ended within %s: %s", name, figure.Duration(w.within), launch.Line("kubectl", "describe", "pod", name))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(rolloutPoll):
		}
	}
}

var _ manager.Copier = (*Workload)(nil)
