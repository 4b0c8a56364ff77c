package apply

// A server is started through a gate: rooftop starts itself anew with gateFlag, and
// that process takes on what the server is to have (owner, limits, mask), says
// whether it can, and waits. Its PID is written to the journal, then it is let
// through and becomes the server. A rooftop that is killed in between leaves no
// process that the journal does not know: the gate closes with it.
const gateFlag = "--become-server"

// gateFD is the descriptor of the gate's socket in the new process.
const gateFD = 3

// gateOrder is what a gate is told: first the launch, then that it may go.
type gateOrder struct {
	Launch *Launch `json:"launch,omitempty"`
	Go     bool    `json:"go,omitempty"`
}

// gateAnswer is what a gate says: "" that it is ready.
type gateAnswer struct {
	Err string `json:"err"`
}
