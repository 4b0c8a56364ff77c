//go:build !linux

package apply

// BecomeServer does nothing where servers are not started by rooftop.
func BecomeServer() {}
