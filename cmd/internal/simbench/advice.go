package simbench

import (
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/scenarios"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// recommended is the diagnosis's recommendation as a change; false where it
// cannot be tried on the scenario.
func recommended(sc *scenarios.Scenario, d *engine.Diagnosis) (*scenarios.Change, bool) {
	rec := d.Recommendation
	switch {
	case rec == nil:
		return nil, false
	case rec.Kind == engine.KindFlag:
		return recommendedFlag(sc, rec)
	case rec.Finding == engine.UnderBatching && rec.Kind == engine.KindClient:
		return moreUsers(sc, rec)
	}
	return nil, false
}

// recommendedFlag reads the change from the launch command that rooftop wrote.
func recommendedFlag(sc *scenarios.Scenario, rec *engine.Recommendation) (*scenarios.Change, bool) {
	if rec.Launch == "" {
		return nil, false
	}
	before, err1 := launch.Parse(strings.Fields(sc.Server), nil, nil)
	after, err2 := launch.ParseCommand(rec.Launch, nil, nil)
	if err1 != nil || err2 != nil {
		return nil, false
	}
	c := &scenarios.Change{}
	for _, d := range launch.Diff(before, after) {
		name := strings.ReplaceAll(d.Name, "_", "-")
		switch {
		case d.Variable:
		case d.To != "":
			c.Set = append(c.Set, scenarios.Flag{Name: name, Value: d.To})
		default:
			c.Drop = append(c.Drop, name)
		}
	}
	return c, !c.Empty()
}

// moreUsers has as many clients at once as rooftop asks for, where the load is
// one closed loop of one phase.
func moreUsers(sc *scenarios.Scenario, rec *engine.Recommendation) (*scenarios.Change, bool) {
	to, err := strconv.Atoi(rec.To)
	if err != nil || len(sc.Load) != 1 || len(sc.Load[0].Phases) != 1 || sc.Load[0].Phases[0].Users == 0 {
		return nil, false
	}
	s := sc.Load[0]
	s.Phases = []scenarios.Phase{{Users: to}}
	s.Think = 0 // what is asked for is requests at once, not people
	return &scenarios.Change{Load: []scenarios.Stream{s}}, true
}

// load is a changed load in short.
func load(streams []scenarios.Stream) string {
	if s := &streams[0]; len(streams) == 1 && len(s.Phases) == 1 && s.Closed() {
		return strconv.Itoa(s.Phases[0].Users) + " users"
	}
	return "other load"
}
