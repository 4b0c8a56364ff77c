//go:build linux && cgo

package main

// nvmlBuilt reports whether this build can load NVML.
const nvmlBuilt = true
