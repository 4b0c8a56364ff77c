package proc

import (
	"os"
	"regexp"
)

// dockerGroup matches the path of the control group of a container of Docker: /docker/ID, or
// /system.slice/docker-ID.scope if systemd creates the groups.
var dockerGroup = regexp.MustCompile(`(?:^|/)docker[-/]([0-9a-f]{64})\b`)

// Container returns the ID of the container of Docker that the server runs in; "" if it runs in none, or in
// rooftop's own.
func (s *Server) Container() string {
	return container(s.fs.Cgroups(s.LaunchPID), s.fs.Cgroups(os.Getpid()))
}

// container returns the ID of the container with one of the control groups, except ours.
func container(theirs, ours []string) string {
	innermost := func(groups []string) string {
		for _, path := range groups {
			if all := dockerGroup.FindAllStringSubmatch(path, -1); len(all) > 0 {
				return all[len(all)-1][1]
			}
		}
		return ""
	}
	if id := innermost(theirs); id != innermost(ours) {
		return id
	}
	return ""
}
