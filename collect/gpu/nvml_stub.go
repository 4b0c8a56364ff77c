//go:build !linux || !cgo

package gpu

import (
	"context"
	"errors"
	"time"
)

// openLocalNVML always fails: go-nvml needs cgo, and the library that it loads exists
// only for Linux.
func openLocalNVML(context.Context, func() time.Duration) (Source, error) {
	return nil, errors.New("this build of rooftop has no NVML (it was built without cgo, or not for Linux)")
}
