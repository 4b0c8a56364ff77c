package proc

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// sessions are services of systemd in which people and timers start programs: none of them starts a server
// again.
var sessions = []string{"ssh", "sshd", "cron", "crond", "atd", "gnome-terminal-server", "tmux", "screen", "init", "user"}

// Service returns the service of systemd that starts the server, and the UID of the user to whose manager it
// belongs, -1 for the system's; "" if none does. A service that rooftop runs in too, such as that of a
// container runtime, does not count.
func (s *Server) Service() (name string, uid int) {
	return service(s.fs.Cgroups(s.LaunchPID), s.fs.Cgroups(os.Getpid()))
}

// service returns the service with one of the control groups, except those of ours.
func service(theirs, ours []string) (name string, uid int) {
	for _, group := range theirs {
		base := path.Base(group)
		bare, _, _ := strings.Cut(strings.TrimSuffix(base, ".service"), "@")
		if bare == base || slices.Contains(sessions, bare) || slices.Contains(ours, group) {
			continue
		}
		uid = -1
		for part := range strings.SplitSeq(group, "/") {
			if text, ok := strings.CutPrefix(strings.TrimSuffix(part, ".service"), "user@"); ok {
				if n, err := strconv.Atoi(text); err == nil {
					uid = n
				}
			}
		}
		return base, uid
	}
	return "", -1
}

// Name names the server by what runs it: "vllm.service (process 7)", "container 0123456789ab
// (process 7)", "pod llm/vllm-7d9f (process 7)", "process 7".
func (s *Server) Name() string {
	pid := s.LaunchPID
	if s.Launch == nil {
		pid = s.ListenerPID
	}
	text := fmt.Sprintf("process %d", pid)
	if place := s.Place(); place != "" {
		text = place + " (" + text + ")"
	}
	return text
}

// Place names what started the server and holds its command line: "vllm.service", "container 0123456789ab",
// "pod llm/vllm-7d9f"; "" for a process of its own.
func (s *Server) Place() string {
	if id := s.Container(); id != "" {
		const short = 12 // characters, as Docker shows it
		return "container " + id[:short]
	}
	if pod := s.Pod(); pod != "" {
		return "pod " + pod
	}
	name, _ := s.Service()
	return name
}
