package vllmsim

// kind is the kind of an event of the front end.
type kind uint8

const (
	arrives kind = iota // a request arrives at the socket
	queues              // a request is tokenized and queued in an engine
	leaves              // the front end notices that a client is gone
	reaches             // an update has passed a slow network
)

// event is a future event of one request.
type event struct {
	kind    kind
	request *request
	update  Update
}
