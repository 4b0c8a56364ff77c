package bench

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// recommended returns the recommendation of a diagnosis as a change. It returns nil if there is none,
// or, with the reason in untried, if it cannot be tried on the scenario.
func recommended(sc *settings.Scenario, d *engine.Diagnosis) (c *settings.Change, untried string) {
	rec := d.Recommendation
	switch {
	case rec == nil:
		return nil, ""
	case rec.Kind == engine.KindFlag:
		return recommendedFlag(sc, rec)
	case rec.Finding == engine.UnderBatching && rec.Kind == engine.KindClient:
		return moreUsers(sc, rec)
	case rec.Kind == engine.KindClient:
		return nil, "these clients cannot do it"
	}
	return nil, fmt.Sprintf("advice to the %s", rec.Kind)
}

// recommendedFlag returns the change from the launch command that rooftop wrote.
func recommendedFlag(sc *settings.Scenario, rec *engine.Recommendation) (c *settings.Change, untried string) {
	if rec.Launch == "" {
		return nil, "no launch command"
	}
	before, err1 := launch.Parse(strings.Fields(sc.Server), nil, nil)
	after, err2 := launch.ParseCommand(rec.Launch, nil, nil)
	if err1 != nil || err2 != nil {
		return nil, "a launch command that is not understood"
	}
	c = &settings.Change{}
	for _, d := range launch.Diff(before, after) {
		name := strings.ReplaceAll(d.Name, "_", "-")
		switch {
		case d.Variable:
		case d.To != "":
			c.Set = append(c.Set, settings.Flag{Name: name, Value: d.To})
		default:
			c.Drop = append(c.Drop, name)
		}
	}
	if c.Empty() {
		return nil, "no flag differs"
	}
	return c, ""
}

// flagWith matches a flag that rooftop recommends together with a change of the load.
var flagWith = regexp.MustCompile(`raise --([a-z-]+) to (\d+) with it`)

// moreUsers returns a change to as many clients as rooftop recommends, with the flag that they need.
// The load must be one closed loop of one phase.
func moreUsers(sc *settings.Scenario, rec *engine.Recommendation) (c *settings.Change, untried string) {
	to, err := strconv.Atoi(rec.To)
	switch {
	case err != nil:
		return nil, "no number of clients"
	case len(sc.Load) != 1 || len(sc.Load[0].Phases) != 1:
		return nil, "a load of several streams or phases"
	case !sc.Load[0].Closed():
		return nil, "open loop"
	}
	s := sc.Load[0]
	s.Phases = []settings.Phase{{Users: to}}
	s.Think = 0 // the recommendation is a number of concurrent requests, not of users
	c = &settings.Change{Load: []settings.Stream{s}}
	if with := flagWith.FindStringSubmatch(rec.Command); with != nil {
		c.Set = []settings.Flag{{Name: with[1], Value: with[2]}}
	} else if strings.Contains(rec.Command, "--") {
		return nil, "a flag with it that is not understood"
	}
	return c, ""
}

// load returns a short description of a changed load.
func load(streams []settings.Stream) string {
	if s := &streams[0]; len(streams) == 1 && len(s.Phases) == 1 && s.Closed() {
		return strconv.Itoa(s.Phases[0].Users) + " users"
	}
	return "other load"
}
