package apply

import (
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/collect/proc"
)

// callers returns the PIDs of processes in which rooftop runs a program. It recognizes
// them by the environment variables that [call] sets, because an editor or another
// rooftop may name the program too.
func callers(path string) []int {
	fs, err := proc.Open("/proc")
	if err != nil {
		return nil
	}
	pids, _ := fs.PIDs()
	return slices.DeleteFunc(pids, func(pid int) bool {
		argv, err := fs.Argv(pid)
		// A script has its path among the first words of its interpreter.
		const words = 3
		if err != nil || !slices.Contains(argv[:min(words, len(argv))], path) {
			return true
		}
		env, err := fs.Environ(pid)
		called := func(entry string) bool { return strings.HasPrefix(entry, revertVariable+"=") }
		return err == nil && !slices.ContainsFunc(env, called)
	})
}
