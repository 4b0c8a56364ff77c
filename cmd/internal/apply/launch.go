package apply

import "time"

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
	Umask int                 `json:"umask"`
	// Log is the file that the server's output goes to, "" where it is no file.
	Log string `json:"log,omitempty"`
}

// File is a configuration file that a launch depends on, byte for byte.
type File struct {
	Path string    `json:"path"`
	Mode uint32    `json:"mode"`
	Data []byte    `json:"data"`
	Time time.Time `json:"time"` // of its last change
}

// Owner is whom a process runs as.
type Owner struct {
	UID    int   `json:"uid"`
	GID    int   `json:"gid"`
	Groups []int `json:"groups"`
}
