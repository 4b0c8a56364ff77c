//go:build !linux

package launcher

// BecomeServer does nothing: rooftop starts servers only on Linux.
func BecomeServer() {}
