package attach

import (
	"github.com/rooftop-dev/rooftop/cmd/internal/apply"
	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
)

// Identity returns the identity of the server across runs.
func (a *Server) Identity() serverdir.Identity {
	host, port := HostPort(a.Target)
	if a.Workload != nil {
		host, port = a.Workload.Place(), 0
	} else if a.Process != nil {
		host = "" // this machine, by whatever name it was reached
		if at := a.Process.Addr.Addr(); at.IsLoopback() {
			host = at.String() // it is reached by no other
		}
	}
	id := serverdir.Identity{Host: host, Port: int(port), Model: a.Header.Inputs.Server.Model, URL: a.Target.String()}
	if id.Model == "" && a.Process != nil && a.Process.Launch != nil {
		if names := a.Process.Launch.ServedModelNames(); len(names) > 0 {
			id.Model = names[0]
		}
	}
	if a.GPUs != nil && !a.Simulated() {
		for _, d := range a.GPUs.Devices() {
			if d.UUID != "" {
				id.GPUs = append(id.GPUs, d.UUID)
			}
		}
	}
	return id
}

// Describe adds the launch and the API key of the server's process to a plan, if known.
func (a *Server) Describe(plan *apply.Plan) {
	if a.Workload != nil {
		if a.object == nil {
			return
		}
		if config := a.Workload.Config(a.object); config != nil {
			plan.Launch = config
			if plan.Ready.APIKey == "" {
				plan.Ready.APIKey, _ = config.APIKey()
			}
		}
		return
	}
	if a.Process == nil || a.Process.Launch == nil {
		return
	}
	plan.Launch = a.Process.Launch
	if plan.Ready.APIKey == "" {
		plan.Ready.APIKey, _ = a.Process.Launch.APIKey()
	}
}

// missing returns why something about the server could not be read; ok is false if it is
// not missing.
func (a *Server) missing(what string) (why string, ok bool) {
	for _, m := range a.Header.Missing {
		if m.What == what {
			return m.Reason, true
		}
	}
	return "", false
}

// WhyNoProcess returns why the server's process is unknown.
func (a *Server) WhyNoProcess() string {
	if why, missing := a.missing(launchCommand); missing {
		return why
	}
	return "it may run on another machine"
}
