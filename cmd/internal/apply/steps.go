package apply

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// Steps returns the steps that Apply would take.
func (s *owned) Steps(a loop.Apply) []string {
	target, err := s.target(a)
	if err != nil {
		return []string{"nothing: " + s.kept.Hide(err.Error())}
	}
	steps := []string{"record in " + s.plan.Journal.Dir() + " the planned change and the exact launch to revert to"}
	switch {
	case s.process == nil:
	case s.process.group:
		steps = append(steps, fmt.Sprintf("stop process %d and its group with SIGTERM; SIGKILL what is left after %v", s.process.PID, s.grace))
	default:
		steps = append(steps, fmt.Sprintf("stop process %d with SIGTERM; SIGKILL what is left of its tree after %v", s.process.PID, s.grace))
	}
	switch {
	case s.returns != "":
		steps = append(steps, "check whether "+s.returns+" restarts it; if so, stop here")
	case s.wary:
		steps = append(steps, "check whether anything restarts it; if so, stop here")
	}
	steps = append(steps, s.edits(target, a)...)
	steps = append(steps, "start "+target.Command()+s.asBefore(target))
	steps = append(steps, fmt.Sprintf("wait up to %v for %s/health, then for a short completion", s.plan.Ready.within(), s.plan.Ready.URL))
	if !a.Revert {
		steps = append(steps, "if that fails: stop it, restore changed files byte for byte, and start "+s.kept.Command())
	}
	return steps
}

// edits returns the steps that change files and variables.
func (s *owned) edits(target *launcher.Launch, a loop.Apply) []string {
	var steps []string
	now := s.kept
	if s.runs != nil {
		now = s.runs
	}
	if len(target.Files) > 0 && !slices.Equal(target.ConfigText(), now.ConfigText()) {
		what := engine.JoinChanges(a.Changes)
		if a.Revert {
			what = "content, mode and time as before"
		}
		steps = append(steps, fmt.Sprintf("replace %s: %s", target.Files[0].Path, target.Hide(what)))
	}
	for _, entry := range target.Env {
		if name, value, _ := strings.Cut(entry, "="); !slices.Contains(now.Env, entry) {
			steps = append(steps, "set the variable "+target.Hide(name+"="+value))
		}
	}
	for _, entry := range now.Env {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.ContainsFunc(target.Env, func(e string) bool { return strings.HasPrefix(e, name+"=") }) {
			steps = append(steps, "remove the variable "+name)
		}
	}
	return steps
}

// asBefore describes the attributes that a start reproduces, and the mark of a trial.
func (s *owned) asBefore(target *launcher.Launch) string {
	text := ""
	if !s.kept.Inherit {
		text = fmt.Sprintf(", with the environment, working directory %s, user %d, limits and streams that it has now", s.kept.Cwd, s.kept.Owner.UID)
	}
	if target != s.kept {
		text += ", marked as a trial by the variable " + markVariable
	}
	return text
}
