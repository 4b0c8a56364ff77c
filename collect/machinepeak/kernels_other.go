//go:build !amd64 && !arm64

package machinepeak

func kernelsHere() kernels { return plain() }
