package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply/manager"
	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// New returns the container in which a server was found, or the service of Docker Compose that makes it. It
// changes nothing. The error is a sentence about why rooftop must not create the container again.
func New(ctx context.Context, found *proc.Server) (manager.Manager, error) {
	c := &Container{daemon: newDaemon("")}
	was, err := c.inspect(ctx, found.Container(), true)
	if missing(err) {
		return nil, fmt.Errorf("process %d is in a container that Docker at %s does not know: set DOCKER_HOST to the Docker that runs it", found.LaunchPID, c.daemon.host)
	} else if err != nil {
		return nil, fmt.Errorf("process %d is in a container: %w", found.LaunchPID, err)
	}
	c.known = &launcher.Container{Host: c.daemon.host, Name: strings.TrimPrefix(was.Name, "/")}
	if err := c.changeable(ctx, was); err != nil {
		return nil, err
	}
	if pids := neighbors(found); len(pids) > 1 {
		return nil, fmt.Errorf("the container %s runs several servers (processes %s), which would all be restarted", c.Name(), strings.Trim(fmt.Sprint(pids), "[]"))
	}
	kept := &launcher.Launch{Argv: slices.Concat(was.Config.Entrypoint, was.Config.Cmd), Env: was.Config.Env, Container: c.known}
	if found.Launch != nil && found.ConfigPath != "" {
		kept.Files = []launcher.File{{Path: found.ConfigPath, Data: found.Launch.File()}}
	}
	if _, err := kept.Config(); err != nil {
		return nil, fmt.Errorf("the container %s starts %s, whose arguments are not those of an inference server that rooftop knows (%w)", c.Name(), launch.Quote(slices.Concat(kept.Argv, []string{"nothing"})[0]), err)
	}
	c.was, c.kept = was, kept
	if was.Config.Labels[projectLabel] != "" {
		s := &service{Container: c, run: run}
		return s, s.find(ctx)
	}
	return c, nil
}

// owners are labels of containers that something other than Docker creates, and what to do instead.
// {label} stands for the value of another label.
var owners = []struct{ label, sentence string }{
	{"com.docker.swarm.service.name", "Docker Swarm makes the container for the service {com.docker.swarm.service.name}: change its arguments with docker service update --args"},
	{"io.kubernetes.pod.name", "Kubernetes makes the container for the pod {io.kubernetes.pod.namespace}/{io.kubernetes.pod.name}: change the arguments where the pod is defined"},
	{"com.hashicorp.nomad.alloc_id", "Nomad makes the container for the allocation {com.hashicorp.nomad.alloc_id}: change the arguments in its job"},
	{"com.amazonaws.ecs.task-arn", "Amazon ECS makes the container for the task {com.amazonaws.ecs.task-arn}: change the arguments in its task definition"},
}

// changeable returns why a container must not be created again; nil if it may be.
func (c *Container) changeable(ctx context.Context, was *container) error {
	for _, owner := range owners {
		if was.Config.Labels[owner.label] != "" {
			return errors.New(regexp.MustCompile(`\{[^}]+\}`).ReplaceAllStringFunc(owner.sentence, func(name string) string {
				return was.Config.Labels[strings.Trim(name, "{}")]
			}))
		}
	}
	if was.HostConfig.AutoRemove {
		return fmt.Errorf("the container %s was started with --rm, so that a stop removes it: start it without --rm", c.Name())
	}
	if strings.HasSuffix(c.Name(), keptSuffix) || strings.HasSuffix(c.Name(), trialSuffix) {
		return fmt.Errorf("the container %s is one that rooftop put aside: 'rooftop recover' puts the server back", c.Name())
	}
	if _, err := c.inspect(ctx, c.Name()+keptSuffix, false); err == nil {
		return fmt.Errorf("a change to the container %s is on trial, and the previous one it is %s: 'rooftop recover' puts it back", c.Name(), c.Name()+keptSuffix)
	} else if !missing(err) {
		return err
	}
	text, err := c.daemon.call(ctx, http.MethodGet, "/containers/json", url.Values{"all": {"1"}}, nil)
	if err != nil {
		return err
	}
	var all []struct {
		ID         string `json:"Id"`
		Names      []string
		Labels     map[string]string
		HostConfig struct{ NetworkMode string }
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return fmt.Errorf("the answer of Docker cannot be read: %w", err)
	}
	for _, other := range all {
		name := strings.TrimPrefix(slices.Concat(other.Names, []string{"?"})[0], "/")
		if labels := other.Labels; other.ID != was.ID && labels[projectLabel] != "" && labels[projectLabel] == was.Config.Labels[projectLabel] && labels[serviceLabel] == was.Config.Labels[serviceLabel] && labels[oneOffLabel] != "True" {
			return fmt.Errorf("the service %s has several containers, %s and %s, which would all be restarted", labels[serviceLabel], c.Name(), name)
		}
		if of, ok := strings.CutPrefix(other.HostConfig.NetworkMode, "container:"); ok && (of == was.ID || of == c.Name()) {
			return fmt.Errorf("the container %s uses the network of %s, and would lose it", name, c.Name())
		}
	}
	return nil
}

// neighbors returns the launch processes of the servers in a container, the one that was found among them.
func neighbors(found *proc.Server) []int {
	servers, err := found.FS().Servers()
	if err != nil {
		return nil
	}
	var pids []int
	for _, s := range servers {
		if s.Container() == found.Container() && !slices.Contains(pids, s.LaunchPID) {
			pids = append(pids, s.LaunchPID)
		}
	}
	return pids
}
