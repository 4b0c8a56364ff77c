package launcher

import (
	"time"

	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Launch is everything that an exact restart of a server needs. It holds secrets.
type Launch struct {
	Argv  []string            `json:"argv"`
	Env   []string            `json:"env"` // NAME=value, in the order of the process
	Cwd   string              `json:"cwd"`
	Exe   string              `json:"exe,omitempty"` // target of /proc/PID/exe, which may differ from argv[0]
	Files []File              `json:"files,omitempty"`
	Owner Owner               `json:"owner"`
	Std   [3]string           `json:"std"`              // targets of stdin, stdout and stderr: a path, "pipe:[…]" or ""
	Limit map[string][2]int64 `json:"limits,omitempty"` // resource limits, soft and hard, -1 unlimited
	Nice  int                 `json:"nice"`
	Umask int                 `json:"umask"` // -1 leaves rooftop's own
	// Log is the file that receives the server's output, "" if that is not a file.
	Log string `json:"log,omitempty"`

	// Inherit is true for a server that inherits owner, limits, niceness, umask, OOM score
	// and processors from rooftop.
	Inherit     bool   `json:"inherit,omitempty"`
	OOMScoreAdj int    `json:"oom_score_adj,omitempty"`
	CPUs        string `json:"cpus,omitempty"` // CPUs that it may run on: 0-3,8; "" keeps rooftop's own
	Policy      int    `json:"policy,omitempty"`
	Priority    int    `json:"priority,omitempty"` // of a real-time policy

	Unit      *Unit      `json:"unit,omitempty"`      // that starts the server; nil if none does
	Container *Container `json:"container,omitempty"` // that the server runs in; nil if in none of Docker
	Workload  *Workload  `json:"workload,omitempty"`  // that keeps the server's pods running; nil if none does
}

// Workload is an object of a Kubernetes cluster that keeps pods running.
type Workload struct {
	Context   string `json:"context,omitempty"` // of the kubeconfig, "" for the account of a pod
	Server    string `json:"server"`            // URL of the API server
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`      // deployment, statefulset
	Name      string `json:"name"`      // vllm
	Container string `json:"container"` // of its pods, that runs the server
	Run       string `json:"run"`       // in the object's annotation while a change of this run is on trial
}

// Container is a container of Docker.
type Container struct {
	Host    string   `json:"host"`              // where Docker listens: unix:///var/run/docker.sock
	Name    string   `json:"name"`              // vllm-0
	Compose *Compose `json:"compose,omitempty"` // that makes the container; nil if none does
}

// Compose is a service of Docker Compose.
type Compose struct {
	Command    []string `json:"command"`    // docker compose, with the options of the project
	Files      []string `json:"files"`      // of the project, in their order
	Service    string   `json:"service"`    // vllm
	Path       string   `json:"path"`       // of the file that has its command
	Entrypoint []string `json:"entrypoint"` // words of the container before those of its command
	// Env has the variables that Compose reads and those that the files name, NAME=value, as they
	// were in the run; nil in a launch of an earlier version.
	Env []string `json:"env"`
}

// Unit is a service of systemd.
type Unit struct {
	Name     string `json:"name"`               // vllm.service
	UID      int    `json:"uid"`                // of the user whose manager it belongs to, -1 for the system's
	Prefix   string `json:"prefix,omitempty"`   // characters before the program in ExecStart=, such as - and +
	Fragment string `json:"fragment,omitempty"` // path of the unit's own file
	// Trial and Kept are the paths of rooftop's drop-in files: of a change on trial, which a restart
	// of the machine removes, and of what was kept.
	Trial string `json:"trial"`
	Kept  string `json:"kept"`
}

// File is a configuration file that a launch depends on, byte for byte.
type File struct {
	Path string    `json:"path"`
	Mode uint32    `json:"mode"` // permission bits
	Data []byte    `json:"data"`
	Time time.Time `json:"time"` // of its last change
	UID  int       `json:"uid"`
	GID  int       `json:"gid"`
	// By is the user with whose rights the file is read and replaced; nil for the file's owner.
	By *Owner `json:"by,omitempty"`
	// Fixed is true for a file that could not be replaced when it was read. It is never written.
	Fixed bool `json:"fixed,omitempty"`
}

// Owner is the user and the groups of a process.
type Owner struct {
	UID    int   `json:"uid"`
	GID    int   `json:"gid"`
	Groups []int `json:"groups"`
}

// Do calls do with the owner's rights to files, as [proc.AsUser] does.
func (o Owner) Do(do func() error) error { return proc.AsUser(o.UID, o.GID, o.Groups, do) }

// User returns the user with whose rights the server's files and streams are opened; the zero
// Owner if the server inherits those of rooftop.
func (l *Launch) User() Owner {
	if l.Inherit {
		return Owner{}
	}
	return l.Owner
}

// Config parses the launch as vLLM does.
func (l *Launch) Config() (*launch.Config, error) {
	return launch.Parse(l.Argv, launch.Environ(l.Env), l.ConfigText())
}

// ConfigText returns the text of the config file; nil if there is none.
func (l *Launch) ConfigText() []byte {
	if len(l.Files) == 0 {
		return nil
	}
	return l.Files[0].Data
}

// Command returns the launch command for display, secrets redacted; "" if it cannot be
// parsed.
func (l *Launch) Command() string {
	c, err := l.Config()
	if err != nil {
		return ""
	}
	return c.String()
}

// Hide returns a text with the secrets of the launch redacted. The launch may be nil.
func (l *Launch) Hide(text string) string {
	if l != nil {
		if c, err := l.Config(); err == nil {
			return c.Hide(text)
		}
	}
	return launch.Hide(text)
}
