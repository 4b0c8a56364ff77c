package kubernetes

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/kube"
	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// New returns the workload of a server, whose changes are to be complete within a time. It changes nothing.
// The error is a sentence about why rooftop must not change the object. With force it may although something
// else writes the object too.
func New(ctx context.Context, at *kube.Workload, within time.Duration, force bool) (*Workload, error) {
	at = at.Patient(awayWithin)
	w := newWorkload(at, fmt.Sprintf("%s-%x", serverdir.Hostname(), time.Now().UnixNano()), within)
	o, err := at.Read(ctx)
	if err != nil {
		return nil, err
	}
	if err := w.changeable(o, force); err != nil {
		return nil, err
	}
	verbs, err := at.Verbs(ctx)
	if err != nil {
		return nil, err
	}
	var missing []string
	for i := range verbs {
		switch v := &verbs[i]; {
		case v.Allowed:
		case v.Canary:
			w.lacks = append(w.lacks, v.String())
		default:
			missing = append(missing, v.String())
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("this account may not %s in the namespace %s, so %s would not be put back surely: '%s' says more", strings.Join(missing, ", "), at.Namespace, w.Name(), doctorCommand(w.Name()))
	}
	if err := w.alone(ctx, o); err != nil {
		return nil, err
	}
	container, _ := o.Container(at.Container)
	w.kept, w.from = container.Launch(), settingsOf(container)
	if _, err := w.kept.Config(); err != nil {
		return nil, fmt.Errorf("the command line of %s cannot be read: %w", w.Name(), err)
	}
	w.note(ctx, o)
	return w, nil
}

func doctorCommand(workload string) string {
	return launch.Line("rooftop", "doctor", "--kube", workload)
}

// changeable returns why an object must not be changed; nil if it may be.
func (w *Workload) changeable(o *kube.Object, force bool) error {
	if owner := o.Owner(); owner != "" && !force {
		return fmt.Errorf("%s is not rooftop's to change: %s, or pass --force-owned", w.Name(), owner)
	}
	t, err := trialOf(o)
	switch {
	case err != nil:
		return err
	case t != nil && !t.over(o):
		return t.taken(w.Name())
	case o.Spec.Paused:
		return fmt.Errorf("the rollout of %s is paused: %s", w.Name(), launch.Line("kubectl", "rollout", "resume", w.Name()))
	case o.Spec.UpdateStrategy.Type == "OnDelete":
		return fmt.Errorf("%s replaces pods only when someone deletes them (updateStrategy OnDelete)", w.Name())
	case o.Spec.UpdateStrategy.RollingUpdate.Partition > 0:
		return fmt.Errorf("%s leaves some of its pods as they are (partition %d)", w.Name(), o.Spec.UpdateStrategy.RollingUpdate.Partition)
	case o.Replicas() == 0:
		return fmt.Errorf("%s is scaled to no pods", w.Name())
	case !o.Rolled():
		return fmt.Errorf("%s is being changed already, or its pods are not ready: %s", w.Name(), launch.Line("kubectl", "rollout", "status", w.Name()))
	}
	return nil
}

// alone returns who else changes the object, or has left a canary pod; nil if nobody does. It does
// not take the lease, so that a dry run changes nothing and keeps nobody else from a run.
func (w *Workload) alone(ctx context.Context, o *kube.Object) error {
	if err := w.lease.Check(ctx); err != nil {
		return err
	}
	list, err := w.at.Canaries(ctx, o)
	if len(list) > 0 {
		return fmt.Errorf("%s has a canary pod already, %s, by %s; if that has ended, 'rooftop recover --kube' deletes it from anywhere", w.Name(), list[0].Metadata.Name, runOf(&list[0]))
	}
	return err
}

// note finds what the user should know before the first change.
func (w *Workload) note(ctx context.Context, o *kube.Object) {
	w.notes = append(w.notes, fmt.Sprintf("Kubernetes runs the server as %s: a change replaces its pods; until it is kept, the annotation %s has what stood there before, and the lease %s keeps others from changing it", w.at.Place(), annotation, w.lease.Name()))
	if n := o.Replicas(); n > 1 {
		w.notes = append(w.notes, fmt.Sprintf("%s has %d pods: one of them is measured, and a change is made to all", w.Name(), n))
	}
	if w.at.Operator() {
		w.notes = append(w.notes, fmt.Sprintf("an operator makes the pods of %s from it, with which rooftop was not tested: a change is on trial once all pods have its arguments, and is reverted if they do not get them", w.Name()))
	}
	c, _ := o.Container(w.at.Container)
	if n := c.GPUs(); n != "" && o.Surges() {
		w.notes = append(w.notes, fmt.Sprintf("the strategy RollingUpdate starts a new pod before it ends an old one, unless maxSurge is 0: that takes %s free", n))
	}
	if name, err := w.at.Autoscaler(ctx); name != "" && err == nil {
		w.notes = append(w.notes, fmt.Sprintf("the HorizontalPodAutoscaler %s scales %s: traffic of the measured pod changes with the number of pods", name, w.Name()))
	}
}

// Left returns a workload to undo what any run of rooftop left in it, within a time, and sentences about what
// that is; none if no change is on trial and no canary pod is left. It changes nothing.
func Left(ctx context.Context, at *kube.Workload, within time.Duration) (*Workload, []string, error) {
	o, err := at.Read(ctx)
	if err != nil {
		return nil, nil, err
	}
	at = at.Patient(awayWithin)
	w := newWorkload(at, "", within)
	t, err := trialOf(o)
	if err != nil {
		return w, nil, err
	}
	var found []string
	if t != nil && !t.over(o) {
		at.Container = t.Container
		found = append(found, fmt.Sprintf("%s put a change on trial and did not end it", &t.run))
		w.undo = w.restores()
	}
	list, err := at.Canaries(ctx, o)
	for i := range list {
		found = append(found, fmt.Sprintf("a canary pod, %s, was left by %s", list[i].Metadata.Name, runOf(&list[i])))
		w.undo = append(w.undo, "delete the pod "+list[i].Metadata.Name)
	}
	if len(found) > 0 {
		found = append(found, "if that process still runs, it measures the change: leave it alone")
		if held := w.lease.Check(ctx); held != nil {
			found = append(found, held.Error())
			w.undo = append([]string{"wait to see whether the lease is renewed, and do nothing if it is"}, w.undo...)
		}
	}
	return w, found, err
}
