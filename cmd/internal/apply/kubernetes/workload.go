// Package kubernetes restarts a server that an object of Kubernetes keeps running, such as a Deployment: it
// changes command line and environment in the object, and Kubernetes replaces the pods. What stood there
// before is in an annotation of the object until the change is kept, so that any rooftop can undo it.
package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply/manager"
	"github.com/rooftop-dev/rooftop/cmd/internal/kube"
	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
)

// Workload is an object whose pods run a server: a manager.Copier. It is not safe for concurrent use.
type Workload struct {
	at     *kube.Workload
	id     string        // of the run, "" to undo what any run left
	within time.Duration // limits a rollout
	lease  *kube.Lease
	kept   *launcher.Launch // nil to undo what a run left
	from   settings         // of kept
	runs   *trial           // on trial now, nil after a revert
	ended  error            // that someone else ended a trial of the run, nil if nobody did
	notes  []string
	lacks  []string     // verbs of --canary that the account may not use
	undo   []string     // steps to undo what Left found
	tunnel *kube.Tunnel // of Reach; nil before
	looked time.Time    // when Ended last asked the cluster
}

// awayWithin is how long a change goes on while the API server cannot be reached.
const awayWithin = 90 * time.Second

// Known returns the workload of a launch that an earlier rooftop stored, to undo changes within a time. It
// contacts nothing.
func Known(l *launcher.Launch, within time.Duration) (*Workload, error) {
	at, err := kube.Known(l.Workload)
	if err != nil {
		return nil, err
	}
	return newWorkload(at.Patient(awayWithin), l.Workload.Run, within), nil
}

func newWorkload(at *kube.Workload, id string, within time.Duration) *Workload {
	return &Workload{at: at, id: id, within: within, lease: at.Lease(id, fmt.Sprintf("process %d on %s", os.Getpid(), serverdir.Hostname()))}
}

// Mode returns "workload".
func (w *Workload) Mode() string { return serverdir.ModeWorkload }

// Name returns what kubectl calls the object: "deployment/vllm".
func (w *Workload) Name() string { return w.at.String() }

// Launch returns where the object is. Its command line and environment, which may hold secrets, stay in the
// cluster.
func (w *Workload) Launch() *launcher.Launch {
	l := w.at.Stored()
	l.Run = w.id
	return &launcher.Launch{Workload: l}
}

// Hold takes the lease for the whole run, which Make takes else, so that two runs do not take each other's trials
// for changes of their users.
func (w *Workload) Hold(ctx context.Context) error { return w.lease.Take(ctx, false) }

// Notes returns what the user should know before the first change.
func (w *Workload) Notes() []string { return w.notes }

// Steps returns what Make would do.
func (w *Workload) Steps(c *manager.Change) []string {
	switch {
	case len(w.undo) > 0:
		return w.undo
	case len(c.All) == 0 && w.kept == nil:
		return append(w.restores(), "delete the canary pod of that run, if one is left")
	case len(c.All) == 0:
		return w.restores()
	}
	target, err := w.target(c.All)
	if err != nil {
		return []string{"nothing: " + w.kept.Hide(err.Error())}
	}
	return []string{
		fmt.Sprintf("change %s, so that its container %s starts %s, and keep what stands there now in the annotation %s", w.Name(), w.at.Container, target.Command(), annotation),
		untilReplaced,
	}
}

const untilReplaced = "wait until Kubernetes has replaced its pods"

// restores returns the steps of a revert.
func (w *Workload) restores() []string {
	return []string{fmt.Sprintf("restore what the annotation %s of %s has", annotation, w.Name()), untilReplaced}
}

// target returns the launch of changes to the kept one. Settings of a config file are overridden on the
// command line.
func (w *Workload) target(changes []engine.Change) (*launcher.Launch, error) {
	if w.kept == nil {
		return nil, errors.New("the launch to change is unknown")
	}
	return w.kept.With(changes, true)
}

// Make makes a change or reverts it, and returns when Kubernetes has replaced all pods. A revert deletes canary
// pods of the run.
func (w *Workload) Make(ctx context.Context, change *manager.Change) error {
	if len(change.All) == 0 {
		return w.undone(ctx)
	}
	err := w.ended
	if err == nil {
		err = w.lease.Take(ctx, false)
	}
	var o *kube.Object
	if err == nil {
		o, err = w.at.Read(ctx)
	}
	var target *launcher.Launch
	if err == nil {
		target, err = w.target(change.All)
	}
	if err != nil {
		return &manager.UntouchedError{Err: err}
	}
	before := w.runs
	if err := w.set(ctx, o, target); err != nil {
		return err
	}
	if before != nil && w.runs.To.equal(&before.To) {
		return w.again(ctx, o)
	}
	return w.rollOut(ctx, false)
}

// undone reverts what is on trial. The lease is that of the run, unless this undoes what another process left.
func (w *Workload) undone(ctx context.Context) error {
	if w.kept == nil {
		if err := w.lease.Take(ctx, true); err != nil {
			return err
		}
		defer w.lease.Release()
	}
	o, err := w.at.Read(ctx)
	if err != nil {
		return err
	}
	already, reverted := w.revert(ctx, o)
	removed := w.remove(ctx, o) // even if the object cannot be reverted
	if err := cmp.Or(reverted, removed); err != nil {
		return err
	}
	w.runs = nil
	if err := w.rollOut(ctx, true); err != nil || !already {
		return err
	}
	return manager.ErrRestored
}

// set writes a launch into the object. The error is a *manager.UntouchedError if that was surely not done.
func (w *Workload) set(ctx context.Context, o *kube.Object, target *launcher.Launch) error {
	container, i := o.Container(w.at.Container)
	if container == nil {
		return &manager.UntouchedError{Err: w.changed()}
	}
	now := settingsOf(container)
	on, err := trialOf(o)
	if on != nil && on.ID != w.id && on.over(o) {
		on = nil
	}
	switch {
	case err != nil:
	case on != nil && !w.owns(on):
		err = on.taken(w.Name())
	case on == nil && w.runs != nil:
		w.ended = fmt.Errorf("someone else ended the trial of %s, and rooftop changes it no further: start again with what stands there now", w.Name())
		err = w.ended
	case on == nil && !now.equal(&w.from), on != nil && !now.equal(&on.To):
		err = w.changed()
	}
	t := &trial{
		run: w.run(), Container: w.at.Container, Revision: o.Metadata.Annotations[revision], Rest: restOf(o, w.at.Container), From: w.from,
	}
	if err == nil {
		t.To, err = w.from.with(w.kept, target)
	}
	if err != nil {
		return &manager.UntouchedError{Err: err}
	}
	before := w.runs
	w.runs = t
	if _, err = w.at.Patch(ctx, slices.Concat(replace(o.ContainerPath(i), &now, &t.To), t.note(o))); err == nil {
		return nil
	}
	// Whether it was done is in the object: the answer may have been lost, or be a proxy's.
	again, errRead := w.at.Read(ctx)
	if errRead != nil {
		return err
	}
	switch on, _ = trialOf(again); {
	case on != nil && on.ID == t.ID && on.To.equal(&t.To):
		return nil
	default:
		if c, _ := again.Container(w.at.Container); c == nil || !same(c.Args, now.Args) || !same(c.Command, now.Command) || !same(c.Env, now.Env) {
			err = w.changed()
		}
	}
	w.runs = before
	return &manager.UntouchedError{Err: err}
}

func (w *Workload) run() run {
	return run{ID: w.id, Machine: serverdir.Hostname(), Process: os.Getpid()}
}

// owns reports whether a change on trial is one of this run.
func (w *Workload) owns(t *trial) bool { return w.id == "" || t.ID == w.id }

func (w *Workload) changed() error {
	return fmt.Errorf("someone else changed the container %s of %s meanwhile: start again with what stands there now", w.at.Container, w.Name())
}

// revert restores what the annotation has. Without one nothing was changed, or it was restored already; it
// reports true if someone else restored what this run changed.
func (w *Workload) revert(ctx context.Context, o *kube.Object) (already bool, err error) {
	t, err := trialOf(o)
	if err != nil {
		return false, err
	}
	gone := t == nil || t.ID != w.id && t.over(o)
	if gone {
		t = w.runs // someone removed the annotation
	}
	switch {
	case t == nil:
		return false, nil
	case !w.owns(t):
		return false, t.taken(w.Name())
	}
	container, i := o.Container(t.Container)
	if container == nil {
		return false, fmt.Errorf("%s no longer has a container %s", w.Name(), t.Container)
	}
	now := settingsOf(container)
	if !now.equal(&t.From) && !now.equal(&t.To) {
		return false, fmt.Errorf("someone else changed the container %s of %s since: what stands there now is left; the annotation %s has what stood there before", t.Container, w.Name(), annotation)
	}
	already = now.equal(&t.From)
	var steps []kube.Operation
	if !already {
		steps = replace(o.ContainerPath(i), &now, &t.From)
	}
	if !gone {
		steps = append(steps, forget(o)...)
	}
	if len(steps) > 0 {
		if o, err = w.at.Patch(ctx, steps); err != nil {
			if again, errRead := w.at.Read(ctx); errRead == nil {
				on, errTrial := trialOf(again)
				if c, _ := again.Container(t.Container); on == nil && errTrial == nil && c != nil {
					if is := settingsOf(c); is.equal(&t.From) {
						return false, nil // the first answer was lost
					}
				}
			}
			return false, fmt.Errorf("restore %s: %w", w.Name(), err)
		}
	}
	w.at.Disown(ctx, o)
	return already, nil
}

// Keep removes the annotation with what stood there before the latest change. Without one it does nothing. Where
// this ends a run of another process it deletes that one's canary pod. It is an error if another rooftop has the
// lease: its holder may have changed the object too.
func (w *Workload) Keep(ctx context.Context) error {
	if w.kept != nil {
		if err := w.lease.Check(ctx); err != nil {
			return err
		}
	}
	o, err := w.at.Read(ctx)
	if err == nil && w.kept == nil {
		err = w.remove(ctx, o)
	}
	if err != nil {
		return err
	}
	t, err := trialOf(o)
	container, _ := o.Container(w.at.Container)
	switch {
	case err != nil:
		return err
	case t == nil || t.ID != w.id && t.over(o):
		if w.runs != nil {
			return w.changed() // it was ended elsewhere
		}
		return nil // it was kept already
	case !w.owns(t):
		return nil // of a later run
	case container == nil:
		return w.changed()
	}
	if is := settingsOf(container); !is.equal(&t.To) {
		return w.changed()
	}
	if _, err := w.at.Patch(ctx, forget(o)); err != nil {
		if o, errRead := w.at.Read(ctx); errRead != nil || o.Metadata.Annotations[annotation] != "" {
			return fmt.Errorf("keep the change to %s: %w", w.Name(), err)
		}
	}
	w.kept, w.from, w.runs = container.Launch(), settingsOf(container), nil
	return nil
}

// rolloutPoll is how often a rollout is looked at; tests shorten it.
var rolloutPoll = time.Second

// roomWithin is how long a pod may wait for a node with room for it.
const roomWithin = 30 * time.Second

// rollOut waits until all pods run what the object says. The error is why one of them never will. back is set
// for a revert, which replaces pods that Kubernetes leaves alone.
func (w *Workload) rollOut(ctx context.Context, back bool) error {
	var crowded time.Time
	deleted := map[string]bool{}
	for deadline := time.Now().Add(w.within); ; {
		o, err := w.at.Read(ctx)
		if err != nil {
			return err
		}
		if c, _ := o.Container(w.at.Container); w.runs != nil {
			if c == nil {
				return w.changed()
			}
			if is := settingsOf(c); !is.equal(&w.runs.To) {
				return w.changed()
			}
		}
		if o.Rolled() {
			return nil
		}
		pods, err := w.at.Pods(ctx, o)
		if err != nil {
			return err
		}
		waits, crowds := o.Failure(), false
		for i := range pods {
			p := &pods[i]
			if p.Ready() {
				continue
			}
			if !p.Current {
				if uid := string(p.Metadata.UID); back && w.at.Ordered() && !deleted[uid] {
					deleted[uid] = true
					if err := w.at.Delete(ctx, p); err != nil {
						return err
					}
				}
				continue
			}
			why, hopeless := w.at.Trouble(ctx, p)
			if hopeless && !back {
				return errors.New(w.hide(why))
			}
			if waits = p.State(); why != "" {
				waits, crowds = w.hide(why), !hopeless && !back
			}
		}
		if !crowds {
			crowded = time.Time{}
		} else if crowded.IsZero() {
			crowded = time.Now()
		}
		if crowds && time.Since(crowded) > roomWithin {
			if !back && o.Surges() {
				waits += "; its strategy keeps the old pod until the new one is ready: set strategy.type Recreate, or maxUnavailable to 1"
			}
			return errors.New(waits)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the pods of %s are not replaced within %s: %s", w.Name(), figure.Duration(w.within), cmp.Or(waits, "some are still those before it"))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(rolloutPoll):
		}
	}
}

// endedEvery is how often Ended asks the cluster.
const endedEvery = 2 * time.Second

// Ended returns why a pod of the object will not answer; nil while all may.
func (w *Workload) Ended(ctx context.Context) error {
	if time.Since(w.looked) < endedEvery {
		return nil
	}
	w.looked = time.Now()
	o, err := w.at.Read(ctx)
	if err != nil {
		return nil //nolint:nilerr // that the cluster cannot be asked says nothing of the server
	}
	pods, err := w.at.Pods(ctx, o)
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	for i := range pods {
		if p := &pods[i]; p.Current && !p.Ready() {
			if why, hopeless := w.at.Trouble(ctx, p); hopeless {
				return errors.New(w.hide(why))
			}
		}
	}
	return nil
}

// again starts the pods once more with the settings that they have, one after another.
func (w *Workload) again(ctx context.Context, o *kube.Object) error {
	pods, err := w.at.Pods(ctx, o)
	if err != nil {
		return err
	}
	for i := range pods {
		if err := w.at.Delete(ctx, &pods[i]); err != nil {
			return err
		}
		for deadline := time.Now().Add(w.within); ; {
			now, err := w.at.Pods(ctx, o)
			if err != nil {
				return err
			}
			ready := 0
			for j := range now {
				if now[j].Ready() && now[j].Metadata.UID != pods[i].Metadata.UID {
					ready++
				}
			}
			if ready >= o.Replicas() {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("%d of %d pods of %s are ready %s after one was started once more", ready, o.Replicas(), w.Name(), figure.Duration(w.within))
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(rolloutPoll):
			}
		}
	}
	return nil
}

// hide redacts the secrets of the kept launch in a text.
func (w *Workload) hide(text string) string { return w.kept.Hide(text) }

// Busy returns nothing: Kubernetes itself finishes what it has begun.
func (w *Workload) Busy() []int { return nil }

// Reach returns a base URL that leads to the server until Close.
func (w *Workload) Reach(ctx context.Context) (string, error) {
	if w.tunnel == nil {
		tunnel, err := w.at.Listen(ctx)
		if err != nil {
			return "", err
		}
		w.tunnel = tunnel
	}
	return w.tunnel.URL(), nil
}

// Close closes what Reach opened, and gives up the lease.
func (w *Workload) Close() {
	w.lease.Release()
	if w.tunnel != nil {
		w.tunnel.Close()
	}
}

// marshal returns a value of this package as JSON.
func marshal(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings, numbers, times and JSON
	}
	return text
}
