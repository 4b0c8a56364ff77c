package docker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// document is a JSON object whose values stay as Docker wrote them.
type document map[string]json.RawMessage

// with returns the document with a value changed.
func (d document) with(key string, value any) document {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // strings, lists and maps of them
	}
	d = maps.Clone(d)
	d[key] = text
	return d
}

// container is what Docker says of a container.
type container struct {
	ID    string `json:"Id"`
	Name  string // with a slash before it
	Image string // ID of the image that it was created from
	State struct {
		Running, Restarting, OOMKilled bool
		ExitCode                       int
		Error                          string
		StartedAt                      time.Time
	}
	Config struct {
		Hostname, Image      string
		Entrypoint, Cmd, Env []string
		Labels               map[string]string
		Tty                  bool
	}
	HostConfig struct {
		NetworkMode, UTSMode string
		AutoRemove           bool
		Binds                []string
		Mounts               []document
		RestartPolicy        struct{ Name string }
	}
	Mounts []struct {
		Type, Name, Destination, Mode string
		RW                            bool
	}
	SizeRw int64 // bytes in its writable layer, if they were asked for

	raw struct {
		Config, HostConfig document
		NetworkSettings    struct{ Networks map[string]document }
	}
}

// restartsAtBoot reports whether Docker starts the container with the machine although it was stopped: under on-failure
// it does, as a server that is stopped exits with a signal's code.
func (c *container) restartsAtBoot() bool {
	return c.HostConfig.RestartPolicy.Name == "always" || c.HostConfig.RestartPolicy.Name == "on-failure"
}

// parse reads an answer to inspect.
func parse(text []byte) (*container, error) {
	c := new(container)
	if err := errors.Join(json.Unmarshal(text, c), json.Unmarshal(text, &c.raw)); err != nil {
		return nil, fmt.Errorf("the answer of Docker cannot be read: %w", err)
	}
	if c.ID == "" || c.raw.Config == nil || c.raw.HostConfig == nil {
		return nil, errors.New("the answer of Docker describes no container")
	}
	return c, nil
}

// runs reports whether a process of the container runs.
func (c *container) runs() bool { return c.State.Running && !c.State.Restarting }

// shortID is the beginning of an ID by which people, and host names by default, call a container.
func (c *container) shortID() string { return c.ID[:min(len(c.ID), 12)] }

// tries reports whether rooftop made a container for changes that a revert takes back.
func (c *container) tries(back []engine.Change) bool {
	env := launch.Environ(c.Config.Env)
	config, err := launch.Parse(slices.Concat(c.Config.Entrypoint, c.Config.Cmd), env, nil)
	if err != nil || c.Config.Labels[trialLabel] == "" || len(back) == 0 {
		return false
	}
	return !slices.ContainsFunc(back, func(one engine.Change) bool {
		value := env[one.Flag]
		if !launcher.Variable.MatchString(one.Flag) {
			text, _, _ := config.Value(one.Flag)
			value = loop.SettingText(text)
		}
		return value != one.From
	})
}

// trialLabel is on a container that rooftop made: the ID of the container before it.
const trialLabel = "dev.rooftop.replaces"

// operational are fields of a container in a network that follow from its start.
var operational = []string{
	"NetworkID", "EndpointID", "Gateway", "IPAddress", "IPPrefixLen", "IPv6Gateway", "GlobalIPv6Address", "GlobalIPv6PrefixLen", "MacAddress", "DNSNames",
}

// again returns the request that creates a container like this one with another command line and
// environment, and the networks to connect it to after that: older versions of Docker create a container in
// one network only.
func (c *container) again(image string, argv, env []string) (request document, further map[string]document) {
	entrypoint, cmd := argv, []string{}
	if n := len(c.Config.Entrypoint); n <= len(argv) && slices.Equal(argv[:n], c.Config.Entrypoint) {
		entrypoint, cmd = argv[:n], argv[n:]
	}
	if len(entrypoint) == 0 {
		entrypoint = []string{""} // none, nor that of the image
	}
	labels := maps.Clone(c.Config.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[trialLabel] = c.ID
	request = c.raw.Config.with("Entrypoint", entrypoint).with("Cmd", cmd).with("Env", env).with("Labels", labels).with("Image", image)
	mode := c.HostConfig.NetworkMode
	joined := strings.HasPrefix(mode, "container:")
	if joined { // they are the other container's
		delete(request, "ExposedPorts")
	}
	if joined || c.HostConfig.UTSMode == "host" || c.Config.Hostname == c.shortID() {
		delete(request, "Hostname")
	}
	request = request.with("HostConfig", c.hostConfig())
	first, further := map[string]document{}, map[string]document{}
	for name, network := range c.raw.NetworkSettings.Networks {
		at := further
		if name == mode || string(network["NetworkID"]) == `"`+mode+`"` || name == "bridge" && mode == "default" {
			at = first
		}
		at[name] = c.endpoint(network)
	}
	if joined || mode == "host" || mode == "none" {
		first = nil
	}
	return request.with("NetworkingConfig", map[string]any{"EndpointsConfig": first}), further
}

// endpoint returns how the container was connected to a network.
func (c *container) endpoint(network document) document {
	network = maps.Clone(network)
	for _, field := range operational {
		delete(network, field)
	}
	var aliases []string
	if json.Unmarshal(network["Aliases"], &aliases) == nil && len(aliases) > 0 {
		network = network.with("Aliases", slices.DeleteFunc(aliases, func(a string) bool { return a == c.shortID() }))
	}
	return network
}

// hostConfig returns the container's host configuration with its volumes that have no name of their own: a
// new container would get empty ones.
func (c *container) hostConfig() document {
	binds, mounts := slices.Clone(c.HostConfig.Binds), slices.Clone(c.HostConfig.Mounts)
	for _, m := range c.Mounts {
		if m.Type != "volume" || slices.ContainsFunc(binds, func(b string) bool { return bound(b) == m.Destination }) {
			continue
		}
		i := slices.IndexFunc(mounts, func(d document) bool { return text(d["Target"]) == m.Destination })
		switch {
		case i < 0:
			mode := m.Mode
			if mode == "" && !m.RW {
				mode = "ro"
			}
			binds = append(binds, strings.TrimSuffix(m.Name+":"+m.Destination+":"+mode, ":"))
		case text(mounts[i]["Source"]) == "":
			mounts[i] = mounts[i].with("Source", m.Name)
		}
	}
	out := c.raw.HostConfig
	if len(binds) > len(c.HostConfig.Binds) {
		out = out.with("Binds", binds)
	}
	if len(mounts) > 0 {
		out = out.with("Mounts", mounts)
	}
	return out
}

// bound returns the path in the container of a bind: "/host/path:/path:ro".
func bound(bind string) string {
	parts := strings.Split(bind, ":")
	return parts[min(1, len(parts)-1)]
}

func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(bytes.TrimSpace(raw), &s)
	return s
}
