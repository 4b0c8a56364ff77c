package fleetscan

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine/fleet"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// polledAtOnce is the number of servers that are polled at once. Each costs four requests a second, and some 2 ms of
// CPU for each of them.
const polledAtOnce = 64

// maxFile is the largest file of URLs, in bytes.
const maxFile = 1 << 20

// Polled are the flags that choose servers to poll, beside those of [attach.Options.RegisterKube].
type Polled struct {
	File string // of URLs
}

// Register adds the flags.
func (o *Polled) Register(f *pflag.FlagSet) {
	f.StringVar(&o.File, "urls", "", "`FILE` with the URL of a server in each line; # begins a comment")
}

// Fleet polls the servers for the duration given, and returns them, what to look at first on top. given are the
// facts that the user gives about all of them. progress gets the number of servers done and of all; it may be
// nil. A server that does not answer is listed as down, and one that could not be read with the reason.
func (o *Polled) Fleet(ctx context.Context, given *attach.Options, progress func(done, all int)) ([]fleet.Server, error) {
	servers, err := o.servers(ctx, given)
	if err != nil {
		return nil, err
	}
	list := make([]fleet.Server, len(servers))
	var group errgroup.Group
	finished := cli.CountDone(progress, len(servers))
	group.SetLimit(polledAtOnce)
	for i := range servers {
		group.Go(func() error {
			s := &servers[i]
			list[i] = measure(ctx, s, given.Duration)
			list[i].Name, list[i].Deployment, list[i].Command = s.Name, s.Owner, s.Command
			finished()
			return nil
		})
	}
	_ = group.Wait()
	if ctx.Err() != nil {
		return nil, cli.Interrupted(ctx)
	}
	fleet.Rank(list)
	return list, nil
}

// measure polls a server.
func measure(ctx context.Context, s *attach.Replica, duration time.Duration) fleet.Server {
	defer s.Close()
	if s.Err != nil {
		return fleet.Unread(s.Name, s.Err.Error())
	}
	a, err := s.Locator.Open(ctx)
	switch {
	case s.Locator.Away(err):
		return fleet.Down(s.Name, err.Error())
	case err != nil:
		return fleet.Unread(s.Name, err.Error())
	}
	defer a.Close()
	d, err := a.Measure(ctx, duration, nil, nil)
	if err != nil {
		return fleet.Unread(s.Name, err.Error())
	}
	return fleet.Server{Diagnosis: d}
}

// servers returns the servers that the options name.
func (o *Polled) servers(ctx context.Context, given *attach.Options) ([]attach.Replica, error) {
	if o.File != "" {
		return o.listed(given)
	}
	return given.Replicas(ctx)
}

// listed returns the servers of the file. The error is a usage error.
func (o *Polled) listed(given *attach.Options) ([]attach.Replica, error) {
	text, err := cli.ReadFile(o.File, maxFile)
	if err != nil {
		return nil, cli.Usagef("--urls: %w", err)
	}
	var list []attach.Replica
	seen := map[string]int{}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		target, err := collect.ParseTarget(line)
		if err != nil {
			return nil, cli.Usagef("--urls %s, line %d: %w", o.File, n, err)
		}
		if first := seen[target.Base()]; first > 0 {
			return nil, cli.Usagef("--urls %s: lines %d and %d name the same server", o.File, first, n)
		}
		seen[target.Base()] = n
		one := *given
		one.URL = line
		list = append(list, attach.Replica{
			Name: strings.TrimPrefix(target.Base(), "http://"), Command: launch.Line("rooftop", "tune", "--url", target.Base()),
			Locator: attach.NewLocator(&one), Close: func() {},
		})
	}
	if len(list) == 0 {
		return nil, cli.Usagef("--urls %s names no server: write a URL in each line, as http://gpu-7:8000", o.File)
	}
	return list, nil
}

// Check rejects a file that names no servers, before any is contacted. The error is a usage error.
func (o *Polled) Check(given *attach.Options) error {
	_, err := o.listed(given)
	return err
}

// Source says in a few words where the servers are from.
func (o *Polled) Source(given *attach.Options) string {
	if o.File != "" {
		return o.File
	}
	return "--kube " + given.Kube
}
