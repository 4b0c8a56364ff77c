//go:build linux && cgo

package main

// nvmlBuilt says whether this build can load NVML.
const nvmlBuilt = true
