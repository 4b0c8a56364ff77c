package proc

import (
	"os"
	"regexp"
	"strings"
)

// podGroup matches the part of a control group's path that names a pod of Kubernetes by its UID: pod0a1b…, or
// kubepods-burstable-pod0a1b….slice if systemd creates the groups.
var podGroup = regexp.MustCompile(`kubepods.*[-/]pod([0-9a-f][0-9a-f_-]{30,})`)

// namespaceFile is the file in which Kubernetes provides a pod's namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// maxNamespace is more than the length of a namespace's name, in bytes.
const maxNamespace = 256

// Pod returns the pod of Kubernetes that the server runs in, as "llm/vllm-7d9f", or without the namespace if
// the pod does not have it; "" if it runs in none, or in rooftop's own.
func (s *Server) Pod() string {
	if uid := podUID(s.fs.Cgroups(s.LaunchPID)); uid == "" || uid == podUID(s.fs.Cgroups(os.Getpid())) {
		return ""
	}
	name := "of unknown name"
	env, _ := s.Environ() // the name of another user's pod is unreadable
	for _, v := range env {
		if host, ok := strings.CutPrefix(v, "HOSTNAME="); ok && host != "" {
			name = host
		}
	}
	namespace, _, err := s.fs.serverFile(s.LaunchPID, "/", namespaceFile, maxNamespace)
	if err == nil && len(namespace) > 0 {
		name = strings.TrimSpace(string(namespace)) + "/" + name
	}
	return name
}

// podUID returns the UID of the pod with one of the control groups; "" if none is a pod's.
func podUID(groups []string) string {
	for _, path := range groups {
		if m := podGroup.FindStringSubmatch(path); m != nil {
			return strings.ReplaceAll(m[1], "_", "-")
		}
	}
	return ""
}
