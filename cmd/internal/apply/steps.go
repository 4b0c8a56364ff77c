package apply

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
)

// Steps says what Apply would do.
func (s *owned) Steps(a engine.Apply) []string {
	target, err := s.target(a)
	if err != nil {
		return []string{"nothing: " + s.kept.hide(err.Error())}
	}
	steps := []string{"write down in " + s.plan.Journal.Dir() + " what is about to be done, and the exact launch to go back to"}
	switch {
	case s.process == nil:
	case s.process.group:
		steps = append(steps, fmt.Sprintf("stop process %d and its group with SIGTERM; SIGKILL what is left after %v", s.process.PID, s.grace))
	default:
		steps = append(steps, fmt.Sprintf("stop process %d with SIGTERM; SIGKILL what is left of its tree after %v", s.process.PID, s.grace))
	}
	switch {
	case s.returns != "":
		steps = append(steps, "look whether "+s.returns+" starts it again; if so, leave it at that")
	case s.wary:
		steps = append(steps, "look whether anything starts it again; if so, leave it at that")
	}
	steps = append(steps, s.edits(target, a)...)
	steps = append(steps, "start "+target.Command()+s.asBefore())
	steps = append(steps, fmt.Sprintf("wait up to %v for %s/health, then for a short completion", s.plan.Ready.within(), s.plan.Ready.URL))
	if !a.Revert {
		steps = append(steps, "where that fails: stop it, restore what was changed byte for byte, and start "+s.kept.Command())
	}
	return steps
}

// edits are the steps that change files and variables.
func (s *owned) edits(target *Launch, a engine.Apply) []string {
	var steps []string
	now := s.kept
	if s.runs != nil {
		now = s.runs
	}
	if len(target.Files) > 0 && !slices.Equal(target.configText(), now.configText()) {
		what := spelled(a.Changes)
		if a.Revert {
			what = "its bytes, mode and time as they were"
		}
		steps = append(steps, fmt.Sprintf("replace %s: %s", target.Files[0].Path, target.hide(what)))
	}
	for _, entry := range target.Env {
		if name, value, _ := strings.Cut(entry, "="); !slices.Contains(now.Env, entry) {
			steps = append(steps, "set the variable "+target.hide(name+"="+value))
		}
	}
	for _, entry := range now.Env {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.ContainsFunc(target.Env, func(e string) bool { return strings.HasPrefix(e, name+"=") }) {
			steps = append(steps, "take out the variable "+name)
		}
	}
	return steps
}

// asBefore says what else a start gives the process.
func (s *owned) asBefore() string {
	if s.kept.Inherit {
		return ""
	}
	return fmt.Sprintf(", with the environment, working directory %s, user %d, limits and streams that it has now", s.kept.Cwd, s.kept.Owner.UID)
}
