// Package docker restarts a server in a container of Docker. A container cannot be changed: a change is a
// second container, created from what Docker says of the first but for command line and environment. The
// first one is stopped and renamed, and removed when the change is kept. A revert starts it again.
//
// The container of a service of Docker Compose is made again by Compose, from its file with another command.
package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply/manager"
	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Suffixes of names of containers: of the previous one during a trial, and of one that was created for a
// change and not started yet.
const (
	keptSuffix  = "-rooftop-kept"
	trialSuffix = "-rooftop-trial"
)

// Container is a container that runs a server: a manager.Manager. It is not safe for concurrent use.
type Container struct {
	daemon *daemon
	known  *launcher.Container
	was    *container       // the kept one as it was found; nil in a rooftop that only undoes changes
	kept   *launcher.Launch // nil like was
	runs   *launcher.Launch // after the latest change, nil if it was a revert
	// started is the ID of the container that Make started, "" before.
	started string
}

// Known returns the container of a launch that an earlier rooftop stored, or the service that makes it, to undo
// changes. It connects to nothing.
func Known(l *launcher.Launch) manager.Manager {
	c := &Container{daemon: newDaemon(l.Container.Host), known: l.Container}
	if l.Container.Compose != nil {
		return &service{Container: c, compose: l.Container.Compose, run: run}
	}
	return c
}

// Mode returns "container".
func (c *Container) Mode() string { return serverdir.ModeContainer }

// Name returns the container's name.
func (c *Container) Name() string { return c.known.Name }

func (c *Container) keptName() string  { return c.Name() + keptSuffix }
func (c *Container) trialName() string { return c.Name() + trialSuffix }

// Launch returns the kept launch with the container.
func (c *Container) Launch() *launcher.Launch {
	if c.kept == nil {
		return &launcher.Launch{Container: c.known}
	}
	return c.kept
}

// notedLayer is the size of a writable layer, in bytes, from which a note says that it is left behind.
const notedLayer = 100e6

// Notes returns what becomes of the container, and what a change leaves behind.
func (c *Container) Notes() []string {
	notes := []string{fmt.Sprintf("Docker runs the server in the container %s: a change creates it again, and the previous one is stopped and named %s until the change is kept", c.Name(), c.keptName())}
	if c.was != nil && c.was.SizeRw >= notedLayer {
		notes = append(notes, fmt.Sprintf("%s has written %s outside of its volumes: a change starts without that, and when it is kept that is removed", c.Name(), figure.Bytes(float64(c.was.SizeRw))))
	}
	return notes
}

// Steps returns what Make would do.
func (c *Container) Steps(change *manager.Change) []string {
	if len(change.All) == 0 {
		return []string{
			fmt.Sprintf("stop and remove the container %s of the change, if it was made", c.Name()),
			fmt.Sprintf("name %s again %s and start it", c.keptName(), c.Name()),
		}
	}
	target, err := c.target(change.All)
	if err != nil {
		return []string{"nothing: " + c.Launch().Hide(err.Error())}
	}
	return []string{
		fmt.Sprintf("create a container like %s, which starts %s", c.Name(), target.Command()),
		fmt.Sprintf("stop %s and name it %s", c.Name(), c.keptName()),
		fmt.Sprintf("name the new container %s and start it", c.Name()),
	}
}

// target returns the launch of changes to the kept one. Settings of a config file are overridden on the
// command line.
func (c *Container) target(changes []engine.Change) (*launcher.Launch, error) {
	if c.kept == nil {
		return nil, errors.New("the launch to change is unknown")
	}
	return c.kept.With(changes, true)
}

// Make makes a change, or reverts it.
func (c *Container) Make(ctx context.Context, change *manager.Change) error {
	c.started = ""
	// Docker finishes what it has begun, so that this waits for it.
	whole, cancel := bounded(ctx)
	defer cancel()
	if len(change.All) == 0 {
		c.runs = nil
		return c.revert(whole, change)
	}
	target, err := c.target(change.All)
	if err != nil {
		return &manager.UntouchedError{Err: err}
	}
	trial, err := c.create(whole, target)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return &manager.UntouchedError{Err: errors.Join(err, c.discard(whole))}
	}
	c.runs = target
	if err := c.putAside(whole); err != nil {
		return err
	}
	if err := c.rename(whole, trial, c.Name()); err != nil {
		return err
	}
	return c.start(whole, trial)
}

// create creates the container of a change, which touches no other, and returns its ID.
func (c *Container) create(ctx context.Context, target *launcher.Launch) (string, error) {
	if err := c.discard(ctx); err != nil {
		return "", err
	}
	request, further := c.was.again(c.image(ctx), target.Argv, target.Env)
	text, err := c.daemon.call(ctx, http.MethodPost, "/containers/create", url.Values{"name": {c.trialName()}}, request)
	if err != nil {
		return "", fmt.Errorf("create a container like %s: %w", c.Name(), err)
	}
	var made struct{ ID string }
	if err := json.Unmarshal(text, &made); err != nil {
		return "", fmt.Errorf("the answer of Docker cannot be read: %w", err)
	}
	for name, endpoint := range further {
		body := map[string]any{"Container": made.ID, "EndpointConfig": endpoint}
		if _, err := c.daemon.call(ctx, http.MethodPost, "/networks/"+url.PathEscape(name)+"/connect", nil, body); err != nil {
			return "", fmt.Errorf("connect a container like %s to the network %s: %w", c.Name(), name, err)
		}
	}
	is, err := c.inspect(ctx, made.ID, false)
	if err != nil {
		return "", err
	}
	if !slices.Equal(slices.Concat(is.Config.Entrypoint, is.Config.Cmd), target.Argv) || !slices.Equal(is.Config.Env, target.Env) {
		return "", fmt.Errorf("a container like %s gets another command line or environment from its image", c.Name())
	}
	return made.ID, nil
}

// image returns the name of the container's image, or its ID if the name means another one by now.
func (c *Container) image(ctx context.Context) string {
	text, err := c.daemon.call(ctx, http.MethodGet, "/images/"+url.PathEscape(c.was.Config.Image)+"/json", nil, nil)
	var means struct{ ID string }
	if err != nil || json.Unmarshal(text, &means) != nil || means.ID != c.was.Image {
		return c.was.Image
	}
	return c.was.Config.Image
}

// discard removes a container that was created for a change and not started.
func (c *Container) discard(ctx context.Context) error {
	old, err := c.inspect(ctx, c.trialName(), false)
	if missing(err) {
		return nil
	} else if err == nil {
		err = c.ours(old, c.was)
	}
	if err != nil {
		return err
	}
	return c.remove(ctx, old)
}

// putAside stops the kept container and renames it, or removes that of an earlier change.
func (c *Container) putAside(ctx context.Context) error {
	now, err := c.inspect(ctx, c.Name(), false)
	if err != nil {
		return err
	}
	if now.ID != c.was.ID {
		if err := c.ours(now, c.was); err != nil {
			return err
		}
		return c.remove(ctx, now)
	}
	if err := c.stop(ctx, now); err != nil {
		return err
	}
	if now.restartsAtBoot() {
		// It would then run beside the trial.
		if err := c.setRestart(ctx, now.ID, json.RawMessage(`{"Name":"no"}`)); err != nil {
			return err
		}
	}
	return c.rename(ctx, now.ID, c.keptName())
}

// revert removes what was made for a change, and starts the kept container under its name. It can begin
// after any step of a change or of a revert.
func (c *Container) revert(ctx context.Context, change *manager.Change) error {
	kept, err := c.inspect(ctx, c.keptName(), false)
	trials := []string{c.trialName(), c.Name()}
	if missing(err) {
		kept, err = c.inspect(ctx, c.Name(), false)
		trials = trials[:1]
		switch {
		case missing(err):
			return fmt.Errorf("the container %s is gone, as docker container prune removes those that are stopped: run it again as before%s", c.Name(), strings.TrimSuffix(", with "+change.Command.After, ", with "))
		case err != nil:
		case c.was == nil && kept.tries(change.Changes):
			return fmt.Errorf("the container before the change is gone, as docker container prune removes those that are stopped, and %s is that of the change: run it again as %s shows it, but with %s", c.Name(), launch.Line("docker", "inspect", c.Name()), engine.JoinChanges(change.Changes))
		case c.was != nil && kept.ID != c.was.ID:
			err = fmt.Errorf("someone removed it, and %s is another one", c.Name())
		case c.kept == nil:
			c.awaitTrial(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("the container to go back to: %w", err)
	}
	for _, name := range trials {
		trial, err := c.inspect(ctx, name, false)
		if missing(err) {
			continue
		} else if err == nil {
			err = c.ours(trial, kept)
		}
		if err != nil {
			return err
		}
		// Docker may still be stopping it for a rooftop that was killed.
		if err := c.stop(ctx, kept); err != nil {
			return err
		}
		if trial.restartsAtBoot() {
			if err := c.setRestart(ctx, kept.ID, trial.raw.HostConfig["RestartPolicy"]); err != nil {
				return err
			}
		}
		if err := c.remove(ctx, trial); err != nil {
			return err
		}
	}
	if kept.Name != "/"+c.Name() {
		if err := c.rename(ctx, kept.ID, c.Name()); err != nil {
			return err
		}
	}
	return c.start(ctx, kept.ID)
}

// lateWithin is how long Docker may still be creating a container for a rooftop that was killed. Tests change it.
var lateWithin = 5 * time.Second

// awaitTrial waits for the container of a change that may be created yet: until then it has no name to be found by.
func (c *Container) awaitTrial(ctx context.Context) {
	for deadline := time.Now().Add(lateWithin); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(removePoll) {
		if _, err := c.inspect(ctx, c.trialName(), false); !missing(err) {
			return
		}
	}
}

// Keep removes the container before the latest change. Without one it does nothing.
func (c *Container) Keep(ctx context.Context) error {
	old, err := c.inspect(ctx, c.keptName(), false)
	if missing(err) {
		return nil
	}
	now, errNow := c.inspect(ctx, c.Name(), false)
	if err = errors.Join(err, errNow); err == nil {
		if err = c.ours(now, old); err == nil {
			err = c.remove(ctx, old)
		}
	}
	if err != nil {
		return fmt.Errorf("keep the change to %s: %w", c.Name(), err)
	}
	if c.runs != nil {
		c.was, c.kept, c.runs = now, c.runs, nil
	}
	return nil
}

// Ended returns why the server in the container that Make started has ended; nil while it runs.
func (c *Container) Ended(ctx context.Context) error {
	if c.started == "" {
		return nil
	}
	now, err := c.inspect(ctx, c.started, false)
	switch {
	case missing(err):
		return fmt.Errorf("someone removed the container %s", c.Name())
	case err == nil && !now.runs():
		return c.failure(ctx, now)
	}
	return nil
}

// failure returns why the server in a container has ended, in the words of its log if there are any.
func (c *Container) failure(ctx context.Context, now *container) error {
	how := fmt.Sprintf("it ended with exit status %d", now.State.ExitCode)
	switch {
	case now.State.OOMKilled:
		how = "it was killed because memory ran out"
	case now.State.Error != "":
		how = now.State.Error
	}
	const logLines = "400"
	query := url.Values{"stdout": {"1"}, "stderr": {"1"}, "tail": {logLines}, "since": {strconv.FormatInt(now.State.StartedAt.Unix(), 10)}}
	log, err := c.daemon.call(ctx, http.MethodGet, "/containers/"+now.ID+"/logs", query, nil)
	if err == nil && !now.Config.Tty {
		log = unframed(log)
	}
	if said := launch.FailureReason(log); said != "" {
		how = said + " (" + how + ")"
	}
	return fmt.Errorf("container %s: %s", c.Name(), how)
}

// Busy returns nothing: Docker itself finishes what it has begun.
func (c *Container) Busy() []int { return nil }

// Close closes the connections to Docker.
func (c *Container) Close() { c.daemon.client.CloseIdleConnections() }

// ours returns an error if rooftop did not create a container in the place of another.
func (c *Container) ours(trial, kept *container) error {
	if kept != nil && trial.Config.Labels[trialLabel] == kept.ID {
		return nil
	}
	return fmt.Errorf("someone else made the container %s: remove or rename it, and if there is one name %s again %s", trial.Name[1:], c.keptName(), c.Name())
}

// inspect describes a container, given by ID or name. Its size takes time.
func (c *Container) inspect(ctx context.Context, name string, sized bool) (*container, error) {
	text, err := c.daemon.call(ctx, http.MethodGet, "/containers/"+url.PathEscape(name)+"/json", url.Values{"size": {strconv.FormatBool(sized)}}, nil)
	if err != nil {
		return nil, err
	}
	return parse(text)
}

// act asks Docker for one action on a container.
func (c *Container) act(ctx context.Context, id, action string, query url.Values, body any) error {
	if _, err := c.daemon.call(ctx, http.MethodPost, "/containers/"+id+"/"+action, query, body); err != nil {
		return fmt.Errorf("%s the container %s: %w", action, c.Name(), err)
	}
	return nil
}

// stop stops a container in the time that it was created with, and waits for it.
func (c *Container) stop(ctx context.Context, one *container) error {
	return c.act(ctx, one.ID, "stop", nil, nil)
}

func (c *Container) start(ctx context.Context, id string) error {
	if err := c.act(ctx, id, "start", nil, nil); err != nil {
		return err
	}
	c.started = id
	return nil
}

func (c *Container) rename(ctx context.Context, id, name string) error {
	return c.act(ctx, id, "rename", url.Values{"name": {name}}, nil)
}

// setRestart sets the restart policy of a container that is stopped. In one that runs it would touch its
// devices too.
func (c *Container) setRestart(ctx context.Context, id string, policy json.RawMessage) error {
	return c.act(ctx, id, "update", nil, map[string]any{"RestartPolicy": policy})
}

// Removing a container that is being removed already is a conflict until it is gone.
const (
	removeWithin = 30 * time.Second
	removePoll   = 200 * time.Millisecond
)

// remove stops and removes a container, and keeps its volumes.
func (c *Container) remove(ctx context.Context, one *container) error {
	if err := c.stop(ctx, one); missing(err) {
		return nil
	} else if err != nil {
		return err
	}
	for deadline := time.Now().Add(removeWithin); ; time.Sleep(removePoll) {
		_, err := c.daemon.call(ctx, http.MethodDelete, "/containers/"+one.ID, nil, nil)
		switch {
		case err == nil || missing(err):
			return nil
		case !hasStatus(err, http.StatusConflict) || time.Now().After(deadline):
			return fmt.Errorf("remove the container %s: %w", one.Name[1:], err)
		}
	}
}
