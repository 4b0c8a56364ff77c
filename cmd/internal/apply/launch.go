package apply

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Launch is everything that an exact restart of a server needs. It holds secrets.
type Launch struct {
	Argv  []string            `json:"argv"`
	Env   []string            `json:"env"` // NAME=value, in the order of the process
	Cwd   string              `json:"cwd"`
	Exe   string              `json:"exe,omitempty"` // what /proc/PID/exe names; argv[0] is what it was called by
	Files []File              `json:"files,omitempty"`
	Owner Owner               `json:"owner"`
	Std   [3]string           `json:"std"`              // what stdin, stdout and stderr lead to: a path, "pipe:[…]", ""
	Limit map[string][2]int64 `json:"limits,omitempty"` // resource limits, soft and hard, -1 unlimited
	Nice  int                 `json:"nice"`
	Umask int                 `json:"umask"` // -1 leaves rooftop's own
	// Log is the file that the server's output goes to, "" where it is no file.
	Log string `json:"log,omitempty"`

	// Inherit says that the server was started by rooftop with what rooftop has
	// itself: owner, limits, niceness, mask, score and processors are left alone.
	Inherit     bool   `json:"inherit,omitempty"`
	OOMScoreAdj int    `json:"oom_score_adj,omitempty"`
	CPUs        string `json:"cpus,omitempty"` // that it may run on: 0-3,8; "" leaves rooftop's own
	Policy      int    `json:"policy,omitempty"`
	Priority    int    `json:"priority,omitempty"` // of a real-time policy
}

// File is a configuration file that a launch depends on, byte for byte.
type File struct {
	Path string    `json:"path"`
	Mode uint32    `json:"mode"` // permission bits
	Data []byte    `json:"data"`
	Time time.Time `json:"time"` // of its last change
	UID  int       `json:"uid"`
	GID  int       `json:"gid"`
}

// Owner is whom a process runs as.
type Owner struct {
	UID    int   `json:"uid"`
	GID    int   `json:"gid"`
	Groups []int `json:"groups"`
}

// config reads the launch as vLLM would.
func (l *Launch) config() (*launch.Config, error) {
	return launch.Parse(l.Argv, launch.Environ(l.Env), l.configText())
}

// configText is the config file's text; nil without one.
func (l *Launch) configText() []byte {
	if len(l.Files) == 0 {
		return nil
	}
	return l.Files[0].Data
}

// Command is the launch command for people, secrets redacted.
func (l *Launch) Command() string {
	c, err := l.config()
	if err != nil {
		return ""
	}
	return c.String()
}

// hide returns a text without the secrets of the launch.
func (l *Launch) hide(text string) string {
	if l != nil {
		if c, err := l.config(); err == nil {
			return c.Hide(text)
		}
	}
	return launch.Hide(text)
}
