package launcher

// Flag starts this program as a launcher process: it assumes the attributes of a launch
// (owner, limits, umask), reports whether that worked, and waits. The caller writes its PID
// to the journal and then permits it to become the server. If the caller is killed first,
// the launcher's socket closes and it ends, so every remaining process is in the journal.
const Flag = "--become-server"

// socketFD is the descriptor of the socket in the launcher process.
const socketFD = 3

// Order is a message to a launcher process: first the launch, then the permission to start.
type Order struct {
	Launch *Launch `json:"launch,omitempty"`
	Go     bool    `json:"go,omitempty"`
}

// Answer is the answer of a launcher process; an empty Err means that it is ready.
type Answer struct {
	Err string `json:"err"`
}
